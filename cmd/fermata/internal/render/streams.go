package render

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/terminal"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// Streams are a command's outputs.
type Streams struct {
	Out, Err *terminal.Output
	// JSON means that standard output is for programs.
	JSON bool
}

// Line writes a value as one line of JSON to standard output. What could control a
// terminal is escaped as JSON escapes it, which programs read the same.
func (s *Streams) Line(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		// Standard output must have only valid lines, so the error goes to standard error.
		s.Note("fermata: error [internal] writing JSON: %v", err)
		return
	}
	if s.Out.ASCII {
		b = untrusted.ASCII(string(b))
	}
	// Invalid bytes would break every reader of JSON.
	fmt.Fprintf(s.Out, "%s\n", bytes.ToValidUTF8(b, []byte("\ufffd")))
}

// Note tells people something beside the output. It may quote what a model's server says.
func (s *Streams) Note(format string, args ...any) {
	fmt.Fprintln(s.Err, untrusted.Sprintf(format, args...))
}

// People prints a line of output for people only.
func (s *Streams) People(format string, args ...any) {
	if !s.JSON {
		s.Print(format, args...)
	}
}

// Print writes a line of output. No argument but an [untrusted.Block] can begin another
// line.
func (s *Streams) Print(format string, args ...any) {
	fmt.Fprintln(s.Out, untrusted.Sprintf(format, args...))
}

// Printer returns a printer of runs to standard output, with colours if that is a
// terminal.
func (s *Streams) Printer() *Printer {
	var o Options
	o.Width, o.Color = s.Out.Look()
	return New(s.Out.Colored(), o)
}
