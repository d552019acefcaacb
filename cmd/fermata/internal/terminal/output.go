package terminal

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// Output is standard output or standard error. It remembers the first write error for the
// exit status, since not every caller checks errors of a line.
type Output struct {
	// ASCII means that the reader can't show other characters.
	ASCII bool

	to     io.Writer
	exact  bool              // data, not text
	screen *untrusted.Screen // nil if it is not a terminal

	mu  sync.Mutex
	err error
}

// Write implements [io.Writer]. It escapes whatever could control a terminal, so that a
// text that nobody has checked does no harm. After an error it writes nothing more.
func (o *Output) Write(p []byte) (int, error) { return o.write(p, untrusted.Escape) }

// Colored returns a writer for our own lines that have colours.
func (o *Output) Colored() io.Writer { return colored{o} }

type colored struct{ *Output }

// Write implements [io.Writer].
func (o colored) Write(p []byte) (int, error) { return o.write(p, untrusted.EscapeKeepColor) }

// Exact returns an output to the same place that writes data unchanged.
func (o *Output) Exact() *Output { return &Output{to: o.to, exact: true} }

// Typed records that somebody typed a line at the terminal.
func (o *Output) Typed() {
	if o.screen != nil {
		o.screen.CursorHome()
	}
}

func (o *Output) write(p []byte, show func(string) string) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	// A pipe that was closed stays closed; one error is enough.
	if o.err != nil {
		return 0, o.err
	}
	if _, err := o.to.Write(o.text(p, show)); err != nil {
		o.err = err
		return 0, err
	}
	// The length of p, not of the escaped text: an io.Writer reports how much of p it
	// took.
	return len(p), nil
}

// text returns what is written for p.
func (o *Output) text(p []byte, show func(string) string) []byte {
	if o.exact {
		return p
	}
	text := show(string(p))
	if o.ASCII {
		text = string(plainText([]byte(text)))
	}
	// Last, because the escapes above change how wide a line is.
	if o.screen != nil {
		text = o.screen.Wrap(text)
	}
	return []byte(text)
}

// Failed returns the first write error ([agent.CodeNotWritten]), or nil.
func (o *Output) Failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	return agent.Errorf(agent.CodeNotWritten, "standard output can't be written, so it is incomplete: %w", o.err)
}

// asASCII replaces our own marks for readers of ASCII.
var asASCII = strings.NewReplacer("…", "...", "·", "-", "→", "->", "—", "--", "–", "-", "✓", "ok", "✗", "x", untrusted.Mark, "|", "┊", ":", "“", `"`, "”", `"`, "’", "'")

// plainText writes text in ASCII. It escapes other characters than our own marks as JSON
// does, so that none is lost.
func plainText(p []byte) []byte {
	if !bytes.ContainsFunc(p, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return p
	}
	return untrusted.ASCII(asASCII.Replace(string(p)))
}
