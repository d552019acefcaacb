package untrusted

import (
	"strings"
	"unicode"
)

// maxHeld bounds how much of an unfinished word a [Stream] holds, in bytes.
const maxHeld = 512

// Stream is a text that comes in pieces and is shown as [Text] shows the whole. It finds
// letters that pretend to be ASCII across pieces. The zero Stream is ready.
type Stream struct {
	printed string // the end of the shown text, which the next piece may continue
	held    string // text that waits for the end of its word
}

// Next takes a piece, and returns what can be shown.
func (s *Stream) Next(piece string) string {
	all := s.printed + s.held + piece
	begin := lastToken(all)
	if len(all)-begin > maxHeld {
		begin = len(all)
	}
	end := max(begin, len(s.printed)) // of what is shown now
	// Plain ASCII looks the same whatever follows, so people see it at once.
	if plain(all[begin:]) {
		end = len(all)
	}
	out := s.shown(all[:end])
	s.printed, s.held = all[begin:end], all[end:]
	return out
}

// End returns the held text, and starts another text.
func (s *Stream) End() string {
	out := s.shown(s.printed + s.held)
	*s = Stream{}
	return out
}

// shown returns a text without its shown beginning. That is ASCII, so its length is
// unchanged.
func (s *Stream) shown(all string) string {
	out := Text(all)
	return out[min(len(s.printed), len(out)):]
}

// lastToken returns where the last word of a text begins, or the URL or address that
// contains it. The next piece may continue it.
func lastToken(s string) int {
	begin := lastOf(s, func(r rune) bool { return !unicode.IsSpace(r) })
	switch token := s[begin:]; {
	case strings.HasSuffix(s, "\r"): // half of a line end
		return len(s) - 1
	case plain(token), strings.ContainsAny(token, ":@"):
		return begin
	}
	return lastOf(s, func(r rune) bool { return inWord(r) || unicode.Is(unicode.So, r) })
}

// lastOf returns where the last characters of a kind begin.
func lastOf(s string, of func(rune) bool) int {
	return len(strings.TrimRightFunc(s, of))
}
