package untrusted

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Continued begins the rest of a line that was wider than the terminal.
const Continued = "┊ "

// minWidth is the smallest width that is believed, in columns.
const minWidth = 20

// Screen is a terminal. It breaks long lines itself and begins the rest with [Continued].
// Otherwise a long text could begin a terminal line with what looks like our own output.
// Standard output and standard error share a Screen if both are the terminal.
type Screen struct {
	width func() int // in columns

	mu     sync.Mutex
	column int
}

// NewScreen returns a screen. width may return another value each time.
func NewScreen(width func() int) *Screen { return &Screen{width: width} }

// CursorHome records that somebody typed a line: the cursor is at the beginning of a
// line.
func (s *Screen) CursorHome() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.column = 0
}

// Wrap breaks lines that are wider than the screen.
func (s *Screen) Wrap(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := s.width()
	// Zero means an unknown width, for example in a pseudo-terminal without a size.
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

// columns returns how many columns a character takes at most.
func columns(r rune, at int) int {
	switch {
	case r == '\t':
		return 8 - at%8
	case r < utf8.RuneSelf:
		return 1
	}
	switch width.LookupRune(r).Kind() {
	// Ambiguous characters count as wide: too short a line is safe, and too long a line is not.
	case width.EastAsianWide, width.EastAsianFullwidth, width.EastAsianAmbiguous:
		return 2
	}
	return 1
}

// colours matches the sequences that our own lines may have.
var colours = regexp.MustCompile(`^\x1b\[[0-9;]*m`)

// EscapeKeepColor is [Escape] for our own lines, whose colours stay. Text from outside
// must be escaped before.
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
			// A lone escape character is escaped like other text.
			colour = s[at : at+1]
			b.WriteString(Escape(colour))
		} else {
			b.WriteString(colour)
		}
		s = s[at+len(colour):]
	}
}
