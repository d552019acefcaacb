// Package wire has the values that the runtime's own parts send to each other over Temporal.
//
// Parents and children exchange them (docs/wire.md §10), a run and its model calls, and workers
// and the account of a daily limit. Users and clients never read or write them, but histories
// record them: every build must read what an older one wrote.
package wire
