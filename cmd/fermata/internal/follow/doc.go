// Package follow hears a run as it goes, to its end, to where it is suspended, or to the next thing
// that somebody waits for.
package follow
