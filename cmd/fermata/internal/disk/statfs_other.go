//go:build !linux && !darwin

package disk

import "errors"

// statfs fails: on this system the free space is unknown.
func statfs(string) (int64, error) { return 0, errors.ErrUnsupported }
