// Package loopback carries live events between the processes of one user on one
// machine. The process that has the embedded Temporal server opens an endpoint on
// loopback with [Open], and records its address and token in the data directory, in a
// file that only this user can read. Other processes publish to it and hear from it
// with a [Client].
//
// The endpoint keeps the open turn of each session: a reader that comes late gets the
// text so far. Every event has a number, and a reader that comes back names the last
// one that it had: nothing is told twice. All of it is bounded, and no worker waits.
package loopback
