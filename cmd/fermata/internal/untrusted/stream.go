package untrusted

import (
	"strings"
	"unicode"
)

// maxHeld bounds what a [Stream] holds of a word that is not whole, in bytes.
const maxHeld = 512

// Stream is a text that comes in pieces, shown as [Text] shows the whole: what pretends to
// be ASCII is found across pieces. The zero Stream is ready.
type Stream struct {
	told string // the end of what was told, where the next piece may go on with its word
	held string // what waits for its word's end
}

// Next takes a piece, and returns what can be shown.
func (s *Stream) Next(piece string) string {
	all := s.told + s.held + piece
	begin := lastToken(all)
	if len(all)-begin > maxHeld {
		begin = len(all)
	}
	end := max(begin, len(s.told)) // of what is told now
	if plain(all[begin:]) {
		end = len(all)
	}
	out := s.shown(all[:end])
	s.told, s.held = all[begin:end], all[end:]
	return out
}

// End returns what was held, and begins another text.
func (s *Stream) End() string {
	out := s.shown(s.told + s.held)
	*s = Stream{}
	return out
}

// shown is a text without what was told of it. That is ASCII, and so was shown as it is.
func (s *Stream) shown(all string) string {
	out := Text(all)
	return out[min(len(s.told), len(out)):]
}

// lastToken is where the last word of a text begins, or the URL or address that it is of:
// another piece may go on with it.
func lastToken(s string) int {
	begin := lastOf(s, func(r rune) bool { return !unicode.IsSpace(r) })
	switch token := s[begin:]; {
	case strings.HasSuffix(s, "\r"): // half of a line's end
		return len(s) - 1
	case plain(token), strings.ContainsAny(token, ":@"):
		return begin
	}
	return lastOf(s, func(r rune) bool { return inWord(r) || unicode.Is(unicode.So, r) })
}

// lastOf is where the characters of a kind begin that a text ends with.
func lastOf(s string, of func(rune) bool) int {
	return len(strings.TrimRightFunc(s, of))
}
