// Package export reads and writes the file with which a session moves to another cluster.
//
// A file is lines of JSON. The first is the envelope: everything but the log. It has a
// signature of its own, so that a worker can verify it alone. Then come the chunks of the
// session's log, from the last to the first; each chunk names the one before it. The last
// line signs all bytes before it.
package export
