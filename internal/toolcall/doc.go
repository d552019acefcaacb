// Package toolcall has what the runtime and a tool's call tell each other beside what the
// tool sees.
package toolcall
