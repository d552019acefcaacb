package untrusted

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Continued begins what a terminal's width has cut off a line.
const Continued = "┊ "

// minWidth is the least width that is believed, in columns.
const minWidth = 20

// Screen is a terminal. It breaks lines itself and begins the rest with [Continued]: else
// a long text could begin a line of the terminal with what looks like ours. Standard output
// and standard error share it where both are the terminal.
type Screen struct {
	width func() int // in columns

	mu     sync.Mutex
	column int
}

// NewScreen returns a screen of a width, which may change.
func NewScreen(width func() int) *Screen { return &Screen{width: width} }

// CursorHome means that somebody has typed a line: the cursor is at a line's beginning.
func (s *Screen) CursorHome() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.column = 0
}

// Wrap breaks lines that are longer than the screen is wide.
func (s *Screen) Wrap(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := s.width()
	if most <= 0 {
		return text
	}
	most = max(most, minWidth)
	var b strings.Builder
	for len(text) > 0 {
		if colour := colours.FindString(text); colour != "" {
			b.WriteString(colour)
			text = text[len(colour):]
			continue
		}
		r, n := utf8.DecodeRuneInString(text)
		takes := columns(r, s.column)
		if r == '\n' {
			s.column, takes = 0, 0
		} else if s.column+takes > most {
			b.WriteString("\n" + Continued)
			s.column = columns('┊', 0) + 1
		}
		s.column += takes
		b.WriteString(text[:n])
		text = text[n:]
	}
	return b.String()
}

// columns is how many columns a character takes, at most.
func columns(r rune, at int) int {
	switch {
	case r == '\t':
		return 8 - at%8
	case r < utf8.RuneSelf:
		return 1
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth, width.EastAsianAmbiguous:
		return 2
	}
	return 1
}

// colours are the sequences of a terminal that our own lines may have.
var colours = regexp.MustCompile(`^\x1b\[[0-9;]*m`)

// EscapeKeepColor is [Escape] for our own lines, whose colours stay. Whatever is from outside has
// lost its own before.
func EscapeKeepColor(s string) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(s, '\x1b')
		if at < 0 {
			return b.String() + Escape(s)
		}
		b.WriteString(Escape(s[:at]))
		colour := colours.FindString(s[at:])
		if colour == "" {
			colour = s[at : at+1]
			b.WriteString(Escape(colour))
		} else {
			b.WriteString(colour)
		}
		s = s[at+len(colour):]
	}
}
