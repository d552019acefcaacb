// Package journal reads a session's log: its runs, its checkpoints, the difference
// between two checkpoints, and what a fork at one of them would repeat.
package journal
