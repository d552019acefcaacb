package handoff

import (
	"fmt"
	"strings"
)

// bullets returns untrusted texts as a list.
func bullets(texts []string) string {
	var lines []string
	for _, text := range texts {
		lines = append(lines, "- "+EscapeLine(text))
	}
	return strings.Join(lines, "\n")
}

// quote returns an untrusted text as a block quotation. Markdown within it ends with the
// quotation.
func quote(text string) string {
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(plain(text)), "\n") {
		line = tags(line)
		// A link definition in a quotation would count for the whole document.
		if inner := strings.TrimLeft(line, " \t"); strings.HasPrefix(inner, "[") {
			line = line[:len(line)-len(inner)] + start(inner)
		}
		lines = append(lines, strings.TrimRight("> "+line, " "))
	}
	return strings.Join(lines, "\n")
}

// inline returns an untrusted text on one line.
func inline(text string) string {
	return tags(folded(plain(text)))
}

// EscapeLine returns an untrusted text as one line of Markdown. It begins no block,
// contains no HTML and no image, and hides no characters.
func EscapeLine(text string) string { return start(inline(text)) }

// start escapes what would begin a Markdown block: a heading, a quotation, a list, a
// rule, a fence, or a link definition.
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

// tags escapes what could be HTML, and images, which a viewer would fetch.
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

// plain returns a text with escapes for invisible characters, and for those that move the
// cursor or change the direction of writing. Lines end with "\n".
func plain(text string) string {
	var b strings.Builder
	// First "\r\n", or it would become two line ends.
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

// hidden reports whether a character is a control, a direction mark, or has no width. The
// list is fixed: a run replays its handoff, and Unicode tables grow with Go's versions.
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
