package tool

// Sandbox names what holds a program: a command of a shell, or an MCP server's.
type Sandbox string

const (
	// SandboxLandlock is Landlock and seccomp of Linux, without any other program. The zero
	// value means the same.
	SandboxLandlock Sandbox = "landlock"
	// SandboxBubblewrap is the command bwrap: namespaces of Linux in which only what a
	// program may reach exists, and seccomp. Where it can't be had, nothing is started:
	// it goes with [ConfineAlways] alone.
	SandboxBubblewrap Sandbox = "bubblewrap"
)
