package untrusted

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many combining marks may follow a character: more would be drawn over
// other lines.
const maxMarks = 4

// Escape writes what can control a terminal, or can't be seen, as JSON escapes it:
// \u001b. Newlines and tabs stay. In a JSON string the escapes mean the same. It returns
// s itself if there is nothing to escape.
func Escape(s string) string {
	if plain(s) {
		return s
	}
	var out []byte
	last, marks := rune('\n'), 0
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			out = fmt.Appendf(out, `\x%02x`, s[0])
		case r == '\r' && strings.HasPrefix(s, "\r\n"): // a line end of Windows
		// Kept after a symbol, where the selector only changes its look.
		case r == emojiStyle && unicode.Is(unicode.So, last):
			out = utf8.AppendRune(out, r)
		case !shows(r), unicode.Is(unicode.M, r) && (marks >= maxMarks || !carries(last)):
			out = escape(out, r)
		default:
			out = utf8.AppendRune(out, r)
		}
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			last, marks = r, 0
		}
		s = s[n:]
	}
	return string(out)
}

// plain reports whether a text has only printable ASCII, newlines and tabs.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// emojiStyle is the variation selector that makes a symbol colourful: ⚠️.
const emojiStyle = '\ufe0f'

// shows reports whether a terminal shows a character as something visible, and does
// nothing else.
func shows(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return true
	// Variation selectors can hide data that only a model reads.
	case r == '\u2800', unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r), unicode.Is(unicode.Variation_Selector, r):
		return false // blank: a Braille cell without dots, fillers of Hangul
	}
	return unicode.IsPrint(r) || unicode.Is(unicode.Zs, r)
}

// carries reports whether a mark can stand above or below a character. Our own margin is
// not such a character.
func carries(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSymbol(r)
}

// escape appends a character as JSON escapes it.
func escape(out []byte, r rune) []byte {
	if r > 0xffff {
		// JSON has no escapes above 0xffff, so a surrogate pair is written.
		r -= 0x10000
		return fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
	}
	return fmt.Appendf(out, `\u%04x`, r)
}

// ASCII escapes everything that is not ASCII as JSON does.
func ASCII(s string) []byte {
	var out []byte
	for _, r := range s {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
		} else {
			out = escape(out, r)
		}
	}
	return out
}
