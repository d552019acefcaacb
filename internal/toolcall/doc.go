// Package toolcall has what the runtime and a tool's call exchange, and the tool's author
// does not see.
package toolcall
