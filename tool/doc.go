// Package tool is the port to what a model may do. [New] makes a tool of a Go
// function: its JSON Schema comes from the function's types, arguments are
// checked before it is called, and it is told its idempotency key, so that what
// it does has its effect once.
package tool
