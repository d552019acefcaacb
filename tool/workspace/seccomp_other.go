//go:build !linux || !(amd64 || arm64)

package workspace

import "errors"

func unlink() error { return errors.ErrUnsupported }

// HoldsNetwork reports whether this machine's kernel can keep commands from the network.
func HoldsNetwork() bool { return false }
