//go:build !linux && !darwin

package disk

import "errors"

// statfs is how many bytes an ordinary user may still write in a folder; here nobody knows.
func statfs(string) (int64, error) { return 0, errors.ErrUnsupported }
