// Package export is the file with which a session moves to another cluster: what
// is in it, and how it is signed.
//
// A file is lines of JSON. The first is the envelope: everything but the log, with
// a signature of its own, so that a worker can check it without the rest. Then
// come the chunks of the session's log, from the last to the first, each named by
// the one before it. The last line signs all bytes before it.
package export
