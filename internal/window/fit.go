package window

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// minCutLength is the shortest length to which a text is cut, in bytes. After that the
// oldest messages are left out.
const minCutLength = 512

// Fit shortens messages to a total length in bytes. It cuts the longest texts in their
// middle, and then leaves out the oldest messages. It does not change the messages
// themselves.
func Fit(entries []store.Entry, room int) []store.Entry {
	if Bytes(entries) <= room {
		return entries
	}
	for start := 0; ; start = next(entries, start) {
		rest := entries[start:]
		if start == len(entries) || length(rest, minCutLength) <= room || next(entries, start) >= len(entries) {
			return cutTo(rest, widest(rest, room))
		}
	}
}

// widest returns the length to which texts must be cut so that all of it fits.
func widest(entries []store.Entry, room int) int {
	low, high := minCutLength, room
	for low+1 < high {
		if mid := (low + high) / 2; length(entries, mid) <= room {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// length returns the length of messages whose texts are cut to width.
func length(entries []store.Entry, width int) int {
	n := Bytes(entries)
	for _, e := range entries {
		for _, p := range e.Parts {
			if text := textOf(p); text != nil && len(*text) > width {
				n -= len(*text) - width
			}
		}
	}
	return n
}

// textOf returns the part's text that can be cut; nil if there is none.
func textOf(p agent.Part) *string {
	switch {
	case p.Type == agent.PartText:
		return &p.Text
	case p.Type == agent.PartToolResult && p.Result != nil:
		return &p.Result.Text
	}
	return nil
}

func cutTo(entries []store.Entry, width int) []store.Entry {
	out := slices.Clone(entries)
	for i, e := range out {
		out[i].Parts = slices.Clone(e.Parts)
		for j, p := range e.Parts {
			if len(p.Raw) > width {
				out[i].Parts[j].Raw = nil // JSON cannot be cut
			}
			text := textOf(p)
			if text == nil || len(*text) <= width {
				continue
			}
			if p.Result != nil {
				r := *p.Result
				r.Text = cut(r.Text, width)
				out[i].Parts[j].Result = &r
				continue
			}
			out[i].Parts[j].Text, out[i].Parts[j].Raw = cut(p.Text, width), nil // the raw form has positions in the whole text
		}
	}
	return out
}

// cut removes the middle of a text and says so in it.
func cut(text string, width int) string {
	mark := fmt.Sprintf("\n[… %d bytes are left out here, to fit the model's window …]\n", len(text)-width)
	room := max(0, width-len(mark))
	head := room * 2 / 3
	tail := room - head
	return strings.ToValidUTF8(text[:head], "") + mark + strings.ToValidUTF8(text[len(text)-tail:], "")
}
