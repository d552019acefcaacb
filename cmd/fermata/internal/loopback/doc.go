// Package loopback carries live events between the processes of one user on one machine.
// The process with the embedded Temporal server opens an endpoint on loopback with
// [Open]. It records the address and the token in the data directory, in a file that only
// this user can read. Other processes publish and subscribe with a [Client].
//
// The endpoint keeps the open turn of each session, so a late reader gets the text so
// far. Every event has a number. A reader that comes back names the last one that it had,
// and gets nothing twice. Everything is bounded, and no worker waits.
package loopback
