//go:build !linux

package main

// conceal does nothing: what one process may read of another is up to the system.
func conceal() error { return nil }
