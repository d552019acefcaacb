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

// Output is standard output or standard error. It remembers the first error in writing,
// for the exit status: not every writer of a line looks at its error.
type Output struct {
	// ASCII means that the reader takes no other characters.
	ASCII bool

	to     io.Writer
	exact  bool              // it is data and not text
	screen *untrusted.Screen // nil where it is no terminal

	mu  sync.Mutex
	err error
}

// Write implements [io.Writer]. Whatever could steer a terminal is written as an escape: this
// is what stands between the terminal and a text that nobody has looked at. After an error
// nothing more is written.
func (o *Output) Write(p []byte) (int, error) { return o.write(p, untrusted.Escape) }

// Colored writes lines of ours that have colours to the output.
func (o *Output) Colored() io.Writer { return colored{o} }

type colored struct{ *Output }

// Write implements [io.Writer].
func (o colored) Write(p []byte) (int, error) { return o.write(p, untrusted.EscapeKeepColor) }

// Exact writes data to where the output goes, as it comes.
func (o *Output) Exact() *Output { return &Output{to: o.to, exact: true} }

// Typed means that somebody at the terminal has typed a line.
func (o *Output) Typed() {
	if o.screen != nil {
		o.screen.CursorHome()
	}
}

func (o *Output) write(p []byte, show func(string) string) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	if _, err := o.to.Write(o.text(p, show)); err != nil {
		o.err = err
		return 0, err
	}
	return len(p), nil
}

// text is what is written of p.
func (o *Output) text(p []byte, show func(string) string) []byte {
	if o.exact {
		return p
	}
	text := show(string(p))
	if o.ASCII {
		text = string(plainText([]byte(text)))
	}
	if o.screen != nil {
		text = o.screen.Wrap(text)
	}
	return []byte(text)
}

// Failed is the first error in writing; nil if there was none.
func (o *Output) Failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	return agent.Errorf(agent.CodeNotWritten, "standard output can't be written, so what it has is not whole: %w", o.err)
}

// asASCII are our own marks without other characters.
var asASCII = strings.NewReplacer("…", "...", "·", "-", "→", "->", "—", "--", "–", "-", "✓", "ok", "✗", "x", untrusted.Mark, "|", "┊", ":", "“", `"`, "”", `"`, "’", "'")

// plainText writes text in ASCII. Other characters than our own marks are escaped as in
// JSON, so that none is lost.
func plainText(p []byte) []byte {
	if !bytes.ContainsFunc(p, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return p
	}
	return untrusted.ASCII(asASCII.Replace(string(p)))
}
