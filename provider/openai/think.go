package openai

import "strings"

// inlineThought separates the thinking that a server has left between marks at the
// beginning of a text. A mark may be divided between two pieces.
type inlineThought struct {
	pending string
	state   thoughtState
}

type thoughtState int

const (
	beforeThought thoughtState = iota
	inThought
	afterThought // or there is none
)

const (
	thoughtBegins = "<think>"
	thoughtEnds   = "</think>"
)

// part adds a piece, and returns what is certainly text, and what is certainly thinking.
func (t *inlineThought) part(piece string) (text, thought string) {
	t.pending += piece
	if t.state == beforeThought {
		trimmed := strings.TrimLeft(t.pending, " \t\r\n")
		switch rest, ok := strings.CutPrefix(trimmed, thoughtBegins); {
		case ok:
			t.state, t.pending = inThought, rest
		case !strings.HasPrefix(thoughtBegins, trimmed):
			t.state = afterThought
		// The text so far may still become the mark.
		default:
			return "", ""
		}
	}
	if t.state == inThought {
		before, rest, ended := strings.Cut(t.pending, thoughtEnds)
		if !ended {
			// The end of this piece may be the start of the closing mark.
			keep := overlap(t.pending, thoughtEnds)
			thought, t.pending = t.pending[:len(t.pending)-keep], t.pending[len(t.pending)-keep:]
			return "", thought
		}
		// Blank lines between the thinking and the text belong to neither.
		if rest = strings.TrimLeft(rest, " \t\r\n"); rest == "" {
			t.pending = thoughtEnds
			if before != "" {
				return "", before
			}
			return "", ""
		}
		t.state, t.pending, thought = afterThought, rest, before
	}
	text, t.pending = t.pending, ""
	return text, thought
}

// rest returns what was held back, at the end.
func (t *inlineThought) rest() (text, thought string) {
	held := t.pending
	t.pending = ""
	switch {
	case t.state != inThought:
		return held, ""
	// The closing mark came last, and no text followed.
	case held == thoughtEnds:
		return "", ""
	}
	return "", held
}

// overlap returns how much of the end of s may be the beginning of a mark.
func overlap(s, mark string) int {
	for n := min(len(s), len(mark)-1); n > 0; n-- {
		if strings.HasSuffix(s, mark[:n]) {
			return n
		}
	}
	return 0
}
