// Package w3ctrace reads and writes the W3C traceparent that goes from one run to the next,
// and into a start's meta (docs/wire.md §3).
package w3ctrace
