// Package agent has the types that every other package uses: what you write, what you
// read, and what goes over the wire. They are plain values that encode to JSON.
//
// Begin with [Definition], which describes an agent, and with [Outcome], which says how a
// run of it ended. [Event] is one line of a session's log, [Suspension] says why a run
// waits, and [Code] says what went wrong. The [Definition] example writes a whole agent
// in Go.
//
// The package runs nothing: package worker runs agents, and package client starts runs
// and reads them. It imports neither Temporal nor a provider's SDK, and of this module
// only small internal packages.
package agent
