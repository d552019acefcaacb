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
// middle, describes the longest files, and then leaves out the oldest messages. It does not change the messages
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
			for _, f := range filesOf(e, p) {
				if tooLong(f, width) {
					n -= f.File.Weight() - width
				}
			}
		}
	}
	return n
}

// filesOf returns the part itself, or the files of its result; none of a summary, which only names
// them.
func filesOf(e store.Entry, p agent.Part) []agent.Part {
	switch {
	case e.Note == agent.NoteSummary:
		return nil
	case p.Result != nil:
		return p.Result.Files
	}
	return []agent.Part{p}
}

// tooLong reports whether a part is a file that counts more than width. A description of it is
// never longer than minCutLength.
func tooLong(p agent.Part, width int) bool { return p.File != nil && p.File.Weight() > width }

// described returns a text that replaces a file.
func described(p agent.Part) string {
	return strings.TrimSpace(fmt.Sprintf("[%s: it is left out, to fit the model's window]\n%s", p.File, p.Text))
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
			if p.Result != nil {
				out[i].Parts[j].Result = cutResult(*p.Result, width)
				continue
			}
			if tooLong(p, width) && e.Note != agent.NoteSummary {
				out[i].Parts[j] = agent.Part{Type: agent.PartText, Text: described(p)}
				continue
			}
			text := textOf(p)
			if text == nil || len(*text) <= width {
				continue
			}
			out[i].Parts[j].Text, out[i].Parts[j].Raw = cut(p.Text, width), nil // the raw form has positions in the whole text
		}
	}
	return out
}

func cutResult(r agent.ToolResult, width int) *agent.ToolResult {
	if len(r.Text) > width {
		r.Text = cut(r.Text, width)
	}
	files := r.Files
	r.Files = nil
	for _, p := range files {
		if tooLong(p, width) {
			r.Text = strings.TrimSpace(r.Text + "\n" + described(p))
		} else {
			r.Files = append(r.Files, p)
		}
	}
	return &r
}

// cut removes the middle of a text and says so in it.
func cut(text string, width int) string {
	mark := fmt.Sprintf("\n[… %d bytes are left out here, to fit the model's window …]\n", len(text)-width)
	room := max(0, width-len(mark))
	head := room * 2 / 3
	tail := room - head
	return strings.ToValidUTF8(text[:head], "") + mark + strings.ToValidUTF8(text[len(text)-tail:], "")
}
