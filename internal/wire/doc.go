// Package wire has the values that the runtime's own parts say to one another over Temporal:
// parents and children (docs/wire.md §10), a run and its model calls, workers and the account of
// a daily limit. No user and no foreign client reads or writes them.
package wire
