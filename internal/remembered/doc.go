// Package remembered has what a session keeps from one run to the next, besides its log.
//
// The head of a session holds it: the session's counters, receipts of messages that came with an
// id, and the events that wait for a daemon's next run. The digests here tell whether a second
// arrival with a known id is a repetition or something else.
package remembered
