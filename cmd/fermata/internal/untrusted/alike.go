package untrusted

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"go.mau.fi/util/confusable"
	"golang.org/x/text/unicode/norm"
)

// alike reports whether a character that is not ASCII looks like ASCII: by Unicode's table
// of confusables (UTS #39), or since it is a form of an ASCII character, as ａ is.
func alike(r rune) bool {
	if r < utf8.RuneSelf {
		return false
	}
	like := confusable.GetReplacement(r)
	if like == "" {
		like = norm.NFKC.String(string(r))
	}
	return !strings.ContainsFunc(like, func(r rune) bool { return r >= utf8.RuneSelf })
}

// foreign reports whether a letter looks like an ASCII letter and is of another script.
// Accented letters, and what Latin alphabets have beside ASCII, are none.
func foreign(r rune) bool {
	return unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) && alike(r)
}

// inWord reports whether a character is part of a word.
func inWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// isASCIILetter reports whether a character is one of the 52.
func isASCIILetter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }

// words hands each word of a text to change, and puts it together again.
func words(s string, change func(word string) string) string {
	var b strings.Builder
	for len(s) > 0 {
		end := strings.IndexFunc(s, func(r rune) bool { return !inWord(r) })
		if end < 0 {
			end = len(s)
		}
		b.WriteString(change(s[:end]))
		s = s[end:]
		next := strings.IndexFunc(s, inWord)
		if next < 0 {
			next = len(s)
		}
		b.WriteString(s[:next])
		s = s[next:]
	}
	return b.String()
}

// mixed escapes, in a word that has ASCII letters, letters of other scripts that look like
// them. A word of another script alone stays readable.
func mixed(word string) string {
	if !strings.ContainsFunc(word, isASCIILetter) || !strings.ContainsFunc(word, foreign) {
		return word
	}
	return escapeIf(word, foreign)
}

// posing does what mixed does, and escapes words of which every letter looks like ASCII:
// what a program takes is decided by, and not read as prose.
func posing(word string) string {
	letters := 0
	for _, r := range word {
		if unicode.IsLetter(r) {
			if letters++; !foreign(r) && !isASCIILetter(r) {
				return mixed(word)
			}
		}
	}
	if letters < 2 {
		return word
	}
	return escapeIf(word, foreign)
}

// escapeIf escapes characters of a kind.
func escapeIf(s string, of func(rune) bool) string {
	if !strings.ContainsFunc(s, of) {
		return s
	}
	var out []byte
	for _, r := range s {
		if of(r) {
			out = escape(out, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return string(out)
}
