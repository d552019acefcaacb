// Package connect finds what a command works with: the Temporal server that flags,
// environment and data directory mean, or the embedded one, which it starts; the workers
// at the task queue; the store; and live events from other processes.
//
// A [Connector] belongs to one invocation. It tells people what it found, and prints
// nothing to standard output.
package connect
