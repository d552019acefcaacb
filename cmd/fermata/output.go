package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// output is standard output or standard error. It remembers the first error in writing,
// for the exit status: not every writer of a line looks at its error.
type output struct {
	to     io.Writer
	ascii  bool              // the reader takes nothing else
	exact  bool              // it is data and not text
	screen *untrusted.Screen // nil where it is no terminal

	mu  sync.Mutex
	err error
}

// Write implements [io.Writer]. Whatever could steer a terminal is written as an escape: this
// is what stands between the terminal and a text that nobody has looked at. After an error
// nothing more is written.
func (o *output) Write(p []byte) (int, error) { return o.write(p, untrusted.Escape) }

// colorOutput is the outlet for lines of ours that have colours.
type colorOutput struct{ *output }

// Write implements [io.Writer].
func (o colorOutput) Write(p []byte) (int, error) { return o.write(p, untrusted.EscapeKeepColor) }

// Typed means that somebody at the terminal has typed a line.
func (o *output) Typed() {
	if o.screen != nil {
		o.screen.CursorHome()
	}
}

func (o *output) write(p []byte, show func(string) string) (int, error) {
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
func (o *output) text(p []byte, show func(string) string) []byte {
	if o.exact {
		return p
	}
	text := show(string(p))
	if o.ascii {
		text = string(plainText([]byte(text)))
	}
	if o.screen != nil {
		text = o.screen.Wrap(text)
	}
	return []byte(text)
}

// failed is the first error in writing; nil if there was none.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	return agent.Errorf(agent.CodeNotWritten, "standard output can't be written, so what it has is not whole: %w", o.err)
}

// onlyASCII reports whether the locale has no other characters. A user who has set none is
// taken to have more.
func onlyASCII() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := os.Getenv(name); locale != "" {
			return locale == "C" || locale == "POSIX"
		}
	}
	return false
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
