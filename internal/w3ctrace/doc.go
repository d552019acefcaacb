// Package w3ctrace reads and writes the W3C traceparent that one run passes to the next,
// and that a start's meta may have (docs/wire.md §3).
package w3ctrace
