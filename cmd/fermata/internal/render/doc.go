// Package render writes what commands print. [Streams] are a command's two outputs, as text for
// people or as lines of JSON for programs. A [Printer] shows a run as it goes: what the model
// says, piece by piece where the pieces come from a worker in this process, which tools it calls
// and how they ended, and the run's usage. The rest are the parts of both: tables, messages,
// events, amounts and errors.
package render
