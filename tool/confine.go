package tool

// Confine says whether a program must be confined to its own files by the kernel. The
// program is a command of a shell, or an MCP server.
type Confine string

const (
	// ConfineAlways does not start the program if the kernel can't confine it. The zero
	// value means the same.
	ConfineAlways Confine = "always"
	// ConfineWherePossible confines the program as far as the kernel can, and starts it
	// anyway.
	ConfineWherePossible Confine = "where_possible"
	// ConfineNever starts the program with all rights of this process's user.
	ConfineNever Confine = "never"
)

// Known reports whether c is one of the constants, or empty.
func (c Confine) Known() bool {
	return c == "" || c == ConfineAlways || c == ConfineWherePossible || c == ConfineNever
}
