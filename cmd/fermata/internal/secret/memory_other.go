//go:build !linux

package secret

// ProtectMemory does nothing on this system, which decides itself what a process may read
// of another.
func ProtectMemory() error { return nil }
