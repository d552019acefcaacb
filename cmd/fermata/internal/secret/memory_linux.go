package secret

import "golang.org/x/sys/unix"

// ProtectMemory keeps other processes of this user, such as MCP servers, from reading the keys
// in this process' environment and memory, and the kernel from writing them into a core file.
func ProtectMemory() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
