// Package connect finds what a command works with: the Temporal server that flags, environment
// and data directory mean, or the embedded one, which it starts; the workers at the task queue;
// the store of the transcripts; and live events from other processes.
//
// A [Connector] is one invocation's. It says to people what it found, and prints nothing to
// standard output.
package connect
