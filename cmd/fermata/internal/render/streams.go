package render

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/terminal"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// Streams are what a command writes to.
type Streams struct {
	Out, Err *terminal.Output
	// JSON means that standard output is for programs.
	JSON bool
}

// Line writes a value as one line of JSON to standard output. What could steer a terminal
// stands there as JSON escapes it, which is the same to a program.
func (s *Streams) Line(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		s.Note("fermata: error [internal] writing JSON: %v", err)
		return
	}
	if s.Out.ASCII {
		b = untrusted.ASCII(string(b))
	}
	fmt.Fprintf(s.Out, "%s\n", bytes.ToValidUTF8(b, []byte("\ufffd")))
}

// Note tells people something beside the output. It may quote what a model's server says.
func (s *Streams) Note(format string, args ...any) {
	fmt.Fprintln(s.Err, untrusted.Sprintf(format, args...))
}

// People prints a line of output that is for people alone.
func (s *Streams) People(format string, args ...any) {
	if !s.JSON {
		s.Print(format, args...)
	}
}

// Print writes a line of output: no argument but an [untrusted.Block] can begin another.
func (s *Streams) Print(format string, args ...any) {
	fmt.Fprintln(s.Out, untrusted.Sprintf(format, args...))
}

// Printer tells runs on standard output, with colours if that is a terminal.
func (s *Streams) Printer() *Printer {
	var o Options
	o.Width, o.Color = s.Out.Look()
	return New(s.Out.Colored(), o)
}
