package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
)

// outlet is standard output or standard error. It remembers the first error in writing,
// for the exit status: not every writer of a line looks at its error.
type outlet struct {
	to    io.Writer
	ascii bool // the reader takes nothing else

	mu  sync.Mutex
	err error
}

// Write implements [io.Writer]. After an error nothing more is written.
func (o *outlet) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	text := p
	if o.ascii {
		text = plainText(p)
	}
	if _, err := o.to.Write(text); err != nil {
		o.err = err
		return 0, err
	}
	return len(p), nil
}

// failed is the first error in writing; nil if there was none.
func (o *outlet) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	return agent.Errorf(agent.NotWritten, "standard output can't be written, so what it has is not whole: %w", o.err)
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
var asASCII = strings.NewReplacer("…", "...", "·", "-", "→", "->", "—", "--", "–", "-", "✓", "ok", "✗", "x", "“", `"`, "”", `"`, "’", "'")

// plainText writes text in ASCII. Other characters than our own marks are escaped as in
// JSON, so that none is lost.
func plainText(p []byte) []byte {
	if !bytes.ContainsFunc(p, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return p
	}
	return escaped(asASCII.Replace(string(p)))
}

// escaped writes what is not ASCII as JSON escapes it.
func escaped(s string) []byte {
	var out []byte
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
