package handoff

import (
	"fmt"
	"strings"
)

// bullets is a list of texts that are not to be trusted.
func bullets(texts []string) string {
	var lines []string
	for _, text := range texts {
		lines = append(lines, "- "+EscapeLine(text))
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

// EscapeLine is a text that is not to be trusted as one line of Markdown: it begins no block, has
// no HTML and no image, and hides nothing.
func EscapeLine(text string) string { return start(inline(text)) }

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

// plain is a text in which what moves a terminal's cursor, turns the direction of writing
// or can't be seen shows as an escape; its lines end with "\n".
func plain(text string) string {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		switch {
		case strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r):
			b.WriteByte('\n')
		case r != '\t' && hidden(r):
			b.WriteString(fmt.Sprintf(`\u%04x`, r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether a character is a control, a mark of direction, or of no width. The
// list is fixed: a handoff is part of what a run replays, and tables of Unicode grow.
func hidden(r rune) bool {
	for _, span := range [][2]rune{
		{0, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x61c, 0x61c}, {0x180e, 0x180e}, {0x200b, 0x200f},
		{0x202a, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xe0000, 0xe007f},
	} {
		if r >= span[0] && r <= span[1] {
			return true
		}
	}
	return false
}
