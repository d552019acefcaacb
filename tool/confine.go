package tool

// Confine says what happens to a program that the kernel should hold to its own files:
// a command of a shell, or an MCP server's.
type Confine string

const (
	// ConfineAlways refuses to start it where the kernel can't hold it. The zero value
	// means the same.
	ConfineAlways Confine = "always"
	// ConfineWherePossible holds it as far as the kernel can, and starts it anyway.
	ConfineWherePossible Confine = "where_possible"
	// ConfineNever starts it with all that the user of this process may do.
	ConfineNever Confine = "never"
)

// Known reports whether c is one of the constants, or empty.
func (c Confine) Known() bool {
	return c == "" || c == ConfineAlways || c == ConfineWherePossible || c == ConfineNever
}
