package handoff

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
)

const (
	listFrame = len(`,"open_questions":[]`) // what a list takes in JSON beside its entries
	refFrame  = len(`,"ref":""`)
	worthIt   = 256 // below this room, in bytes of JSON, no beginning of a text is kept
)

// shrink returns the handoff of one agent, with room bytes more than its smallest form.
// What the next worker needs most comes first: what failed and what was in flight, and
// what is done near the end.
func shrink(h agent.Handoff, room int) agent.Handoff {
	g := growth{room: room - room/8} // the rest is for the note about what was cut
	s := smallest(h)
	s.Done, s.InFlight, s.NotStarted, s.Failed = nil, nil, nil, nil
	s.Task = g.text("task", h.Task, min(room/4, 512))
	s.Reason = g.text("reason", h.Reason, min(room/8, 512))
	s.Summary = g.text("summary", h.Summary, room/3)

	s.Rationale = g.text("rationale", h.Rationale, min(room/8, 512))

	g.lists = filled(h)
	s.Blockers = grow(&g, "blockers", h.Blockers)
	s.Failed = g.items("failed", h.Failed, h.Session)
	s.InFlight = g.items("in flight", h.InFlight, h.Session)
	s.NotStarted = g.items("not started", h.NotStarted, h.Session)
	s.OpenQuestions = grow(&g, "questions", h.OpenQuestions)
	s.Requests = grow(&g, "requests", brief(h.Requests))
	s.Artifacts = grow(&g, "artifacts", h.Artifacts)
	s.Decisions = grow(&g, "decisions", h.Decisions)
	s.Done = g.items("done", h.Done, h.Session)
	s.Evidence = grow(&g, "evidence", h.Evidence)
	s.NextSteps = grow(&g, "next steps", h.NextSteps)

	if len(g.cut) == 0 {
		g.cut = []string{"requests"} // the context of requests was left out
	}
	what := fmt.Sprintf("[cut: %s]", strings.Join(g.cut, ", "))
	if len(what)-len(cutText) > g.room+room/8 {
		what = cutText
	}
	return point(s, h, what)
}

// filled counts the lists that have entries and can be cut.
func filled(h agent.Handoff) (n int) {
	for _, entries := range []int{
		len(h.Done), len(h.InFlight), len(h.NotStarted), len(h.Failed),
		len(h.OpenQuestions), len(h.Requests), len(h.Decisions), len(h.Evidence), len(h.Artifacts), len(h.Blockers), len(h.NextSteps),
	} {
		n += min(entries, 1)
	}
	return n
}

// growth divides the room among the parts of a handoff, one after the other.
type growth struct {
	room  int      // bytes of JSON that are left
	lists int      // lists with entries that are still to come
	cut   []string // what was cut, in words
}

// text keeps as much of a text as fits, at most most bytes.
func (g *growth) text(name, text string, most int) string {
	most = min(most, g.room)
	kept := text
	if width(text) > most {
		kept = head(text, most)
	}
	if kept != text {
		g.cut = append(g.cut, name)
	}
	// The smallest form has the cutText already.
	if kept != cutText {
		g.room -= width(kept)
	}
	return kept
}

// items keeps as many items as fit, and the beginning of the next.
func (g *growth) items(name string, items []agent.WorkItem, session string) []agent.WorkItem {
	before, most := g.room, g.most()
	kept := grow(g, "", items)
	left := items[len(kept):]
	if len(left) == 0 {
		return kept
	}
	next := left[0]
	next.What = ""
	if next.Ref == "" {
		next.Ref = refTo(session)
	}
	room := most - (before - g.room) - size(next) - refFrame - listFrame
	if room >= worthIt && width(left[0].What) > room {
		next.What = head(left[0].What, room)
		g.room -= size(next) + listFrame
		kept = append(kept, next)
	}
	g.tell(name, len(left))
	return kept
}

// most returns how much of the room the next list may use.
func (g *growth) most() int { return g.room / max(g.lists, 1) }

// tell notes that entries were cut.
func (g *growth) tell(name string, n int) {
	if name != "" {
		g.cut = append(g.cut, fmt.Sprintf("%d %s", n, name))
	}
}

// grow keeps as many entries of a list as fit.
func grow[T any](g *growth, name string, list []T) (kept []T) {
	if len(list) == 0 {
		return nil
	}
	most, used := g.most(), listFrame
	g.lists--
	for i, one := range list {
		used += size(one) + 1
		if used > most {
			g.tell(name, len(list)-i)
			return kept
		}
		kept = append(kept, one)
		g.room -= size(one) + 1
		if i == 0 {
			g.room -= listFrame
		}
	}
	return kept
}

// brief returns requests without their context and arguments.
func brief(requests []agent.Request) []agent.Request {
	var out []agent.Request
	for _, r := range requests {
		r.Context, r.Text = "", cut(r.Text, maxText)
		if r.Call != nil {
			r.Call = &agent.RequestCall{ID: r.Call.ID, Tool: r.Call.Tool}
		}
		out = append(out, r)
	}
	return out
}

// head returns the beginning of a text that takes at most most bytes of JSON, with a
// mark.
func head(text string, most int) string {
	if len(text) <= len(cutText) {
		return text
	}
	if most < worthIt {
		return cutText
	}
	room := most - markRoom
	for at, r := range text {
		if room -= runeWidth(r, text[at:]); room < 0 {
			return excerpt.Of(text, at, len(text))
		}
	}
	return text
}

// width returns at least what a text takes in JSON, without quotes.
func width(text string) (n int) {
	for at, r := range text {
		n += runeWidth(r, text[at:])
	}
	return n
}

// runeWidth returns at least what the first character of text takes in JSON.
func runeWidth(r rune, text string) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\t' || r == '\r':
		return 2
	case r < ' ' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029':
		return len(`\u0000`)
	case r == utf8.RuneError && !strings.HasPrefix(text, "\ufffd"):
		return len(`\ufffd`)
	}
	return utf8.RuneLen(r)
}
