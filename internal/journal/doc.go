// Package journal reads what a session's log means: its runs, its checkpoints,
// what lies between two of them, and what beginning anew from one would do.
package journal
