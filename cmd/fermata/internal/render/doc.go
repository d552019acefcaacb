// Package render writes what commands print. [Streams] are a command's two outputs, as
// text for people or as lines of JSON for programs. A [Printer] shows a run as it goes:
// what the model says, which tools it calls and how these end, and the run's usage. The
// rest are parts of both: tables, messages, events, amounts and errors.
package render
