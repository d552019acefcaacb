// Package signals is the wire format of Temporal's signals, updates and queries between
// clients and runs: their names, their payloads, and how these are checked
// (docs/wire.md). Every client speaks it, also the plain temporal command. There is no
// other way to reach a run.
package signals
