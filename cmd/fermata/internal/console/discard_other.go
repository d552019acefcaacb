//go:build !linux && !darwin

package console

import "io"

// discard can't reach what was typed without Enter: the console of this system keeps it to itself.
func discard(io.Reader) {}
