package skill

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hides reports whether a character can carry or reorder text that a reader does not see:
// controls, embeddings and overrides of direction, tags, variation selectors of the
// supplement, and other format characters. A text with one is refused.
func hides(r rune) bool {
	return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) ||
		r >= 0xE0000 && r <= 0xE01EF || unicode.Is(unicode.Cf, r) && !strays(r)
}

// strays reports whether a character has no width and no text of its own, and comes with
// texts that are copied: it is left out.
func strays(r rune) bool {
	switch {
	case r == 0x00AD, r == 0x061C, r == 0x180E, r == 0xFEFF: // soft hyphen, marks, byte order mark
		return true
	case r >= 0x200B && r <= 0x200F, r >= 0x2060 && r <= 0x2064: // U+200B, joiners, marks; word joiner
		return true
	}
	return selects(r)
}

// selects reports whether a character is a variation selector, such as that of emoji.
func selects(r rune) bool { return r >= 0xFE00 && r <= 0xFE0F }

// joins reports whether a character that strays has its use after another one: a joiner
// within emoji or within words of scripts that need it, and one variation selector.
func joins(r, before rune) bool {
	switch {
	case r == 0x200C || r == 0x200D:
		return before > unicode.MaxLatin1 && !strays(before) || before == 0xFE0F
	case selects(r):
		return unicode.IsGraphic(before) && !unicode.IsSpace(before) && !strays(before)
	}
	return false
}

// seen returns a text as a reader sees it: characters that stray are left out, and U+2028
// and U+2029 end a line. remark says how many were left out and where the first is; empty
// for none. A text with a character that hides text is an error, which says where.
func seen(text string) (clean, remark string, err error) {
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf || hides(r) }) < 0 {
		return text, "", nil // the usual case
	}
	var b strings.Builder
	left, line, column, before := 0, 1, 0, ' '
	for _, r := range text {
		column++
		switch {
		case hides(r):
			return "", "", fmt.Errorf("line %d, column %d: the character %U hides or reorders text; take it out", line, column, r)
		case strays(r) && !joins(r, before):
			if left++; left == 1 {
				remark = fmt.Sprintf("line %d, column %d: the character %U", line, column, r)
			}
			continue
		case r == 0x2028 || r == 0x2029:
			r = '\n'
		}
		if r == '\n' {
			line, column = line+1, 0
		}
		b.WriteRune(r)
		before = r
	}
	if left > 0 {
		remark += fmt.Sprintf(" cannot be seen; left out in all: %d", left)
	}
	return b.String(), remark, nil
}
