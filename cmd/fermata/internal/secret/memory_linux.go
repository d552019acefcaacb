package secret

import "golang.org/x/sys/unix"

// ProtectMemory keeps other processes of this user, such as MCP servers, from reading
// keys in this process's environment and memory. It also keeps the kernel from writing
// them into a core file.
func ProtectMemory() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
