//go:build linux && !(amd64 || arm64)

package confine

import "errors"

func sift(bool) error { return errors.ErrUnsupported }

func hasSeccomp() bool { return false }
