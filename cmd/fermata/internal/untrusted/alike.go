package untrusted

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"go.mau.fi/util/confusable"
	"golang.org/x/text/unicode/norm"
)

// alike reports whether a character that is not ASCII looks like ASCII: in Unicode's
// table of confusables (UTS #39), or as a form of an ASCII character, such as ａ.
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

// foreign reports whether a letter looks like an ASCII letter but belongs to another
// script. Accented and other Latin letters do not count.
func foreign(r rune) bool {
	return unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) && alike(r)
}

// inWord reports whether a character is part of a word.
func inWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// isASCIILetter reports whether a character is one of the 52.
func isASCIILetter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }

// words passes each word of a text to change, and joins the results.
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

// mixed escapes letters of other scripts in a word with ASCII letters, if they look like
// these. A word wholly of another script stays readable.
func mixed(word string) string {
	if !strings.ContainsFunc(word, isASCIILetter) || !strings.ContainsFunc(word, foreign) {
		return word
	}
	return escapeIf(word, foreign)
}

// posing does what mixed does, and also escapes words whose letters all look like ASCII.
// It is for values that a program uses: a person decides about them, and does not read
// them as prose.
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

// escapeIf escapes some kind of characters.
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
