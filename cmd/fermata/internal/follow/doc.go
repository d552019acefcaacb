// Package follow follows a run to its end, to its suspension, or to the next thing that a
// caller waits for.
package follow
