package tool

// Sandbox says what confines a program: a command of a shell, or an MCP server.
type Sandbox string

const (
	// SandboxLandlock uses Landlock and seccomp of Linux, and needs no other program. The
	// zero value means the same.
	SandboxLandlock Sandbox = "landlock"
	// SandboxBubblewrap uses the command bwrap: Linux namespaces that contain only what
	// the program may reach, and seccomp. If bwrap can't be used, nothing is started. It
	// only works with [ConfineAlways].
	SandboxBubblewrap Sandbox = "bubblewrap"
)
