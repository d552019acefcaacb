// Package store keeps what a session leaves behind: its log, as a chain of
// sealed chunks, and its head, which says where the chain ends.
//
// A chunk is named by the SHA-256 of its plain form and names the chunk before
// it, so that one digest stands for a whole conversation, a damaged or missing
// part is always noticed, and two sessions with a common past share it. [Log]
// writes and reads chains; a [Store] is where the bytes lie. [Dir] is the one
// on files, which the embedded server and a single machine use; the one on
// PostgreSQL is the module store/postgres, and the one in object stores store/bucket.
//
// What a session left can be deleted ([Log.Delete]), what no session needs be
// collected ([Log.Collect]), and all be read for faults ([Log.Check]).
package store
