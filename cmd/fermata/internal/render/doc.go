// Package render tells a run to people as it goes: what the model says, piece by
// piece where the pieces come from a worker in this process, which tools it
// calls and how they ended, and what all of it took.
package render
