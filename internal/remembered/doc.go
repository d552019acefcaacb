// Package remembered has what a session remembers from one run to the next beside its log: its
// counters, the messages that came with an id, and the events that wait for a daemon's next
// run. The head of a session keeps it. Digests tell two things apart that came with one id.
package remembered
