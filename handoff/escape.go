package handoff

import (
	"strings"
	"unicode"
)

// bullets is a list of texts that are not to be trusted.
func bullets(texts []string) string {
	var lines []string
	for _, text := range texts {
		lines = append(lines, "- "+start(inline(text)))
	}
	return strings.Join(lines, "\n")
}

// quote is a block quotation of a text that is not to be trusted: whatever
// Markdown is in it ends with the quotation.
func quote(text string) string {
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(plain(text)), "\n") {
		line = tags(line)
		if inner := strings.TrimLeft(line, " \t"); strings.HasPrefix(inner, "[") {
			line = line[:len(line)-len(inner)] + start(inner)
		}
		lines = append(lines, strings.TrimRight("> "+line, " "))
	}
	return strings.Join(lines, "\n")
}

// inline is a text that is not to be trusted on one line.
func inline(text string) string {
	return tags(folded(plain(text)))
}

// start escapes what would begin a block of Markdown at the start of a line: a
// heading, a quotation, a list, a rule, a fence, a definition of a link.
func start(line string) string {
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	switch {
	case line == "":
		return line
	case strings.ContainsRune("#>-+*_=~`[", rune(line[0])):
		return `\` + line
	case digits > 0 && digits < len(line) && strings.ContainsRune(".)", rune(line[digits])):
		return line[:digits] + `\` + line[digits:]
	}
	return line
}

// tags takes the meaning from what could be HTML, and from images, which would
// be fetched when somebody looks at them.
func tags(line string) string {
	var b strings.Builder
	for i := range len(line) {
		next := byte(' ')
		if i+1 < len(line) {
			next = line[i+1]
		}
		switch {
		case line[i] == '<' && (next == '/' || next == '!' || next == '?' || next|0x20 >= 'a' && next|0x20 <= 'z'):
			b.WriteString("&lt;")
		case line[i] == '!' && next == '[':
			b.WriteString(`!\`)
		default:
			b.WriteByte(line[i])
		}
	}
	return b.String()
}

// plain is a text without the characters that move a terminal's cursor or turn
// the direction of writing; its lines end with "\n".
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return r
		case strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r):
			return '\n'
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ReplaceAll(text, "\r\n", "\n"))
}
