package handoff

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// account is what the model said of its work.
type account struct {
	summary                          string
	done, inFlight, notBegun, failed []agent.WorkItem
	questions, decisions             []string
	evidence                         []agent.Evidence
	confidence                       float64
	confidenceBy                     agent.SummarizedBy
}

// read takes what the model said apart; false if it has no summary. The
// object may stand in a Markdown fence or between other words. A part of it that
// is not what it should be is left out, and the summary then says so.
func read(said string) (account, bool) {
	_, fenced, _ := strings.Cut(said, "```")
	for _, text := range []string{said, fenced} {
		at := strings.IndexByte(text, '{')
		if at < 0 {
			continue
		}
		r := reader{}
		if json.NewDecoder(strings.NewReader(text[at:])).Decode(&r.fields) != nil {
			continue
		}
		if a, ok := r.account(); ok {
			return a, true
		}
	}
	return account{}, false
}

// reader reads the fields of what the model said one by one, so that a wrong one
// does not cost the others.
type reader struct {
	fields map[string]json.RawMessage
	odd    []string // the fields of which something could not be read
}

func (r *reader) account() (a account, ok bool) {
	if json.Unmarshal(r.fields["summary"], &a.summary) != nil || blank(a.summary) {
		return a, false
	}
	a.summary = strings.TrimSpace(a.summary)
	a.done, a.inFlight = r.items("done"), r.items("in_flight")
	a.notBegun, a.failed = r.items("not_started"), r.items("failed")
	a.questions, a.decisions = r.texts("open_questions"), r.texts("decisions")
	a.evidence = list(r, "evidence", func(e agent.Evidence) bool {
		return slices.Contains([]string{"file", "url", "call"}, e.Kind) && !blank(e.Ref)
	})
	a.confidence, a.confidenceBy = r.confidence()
	if len(r.odd) > 0 {
		mark := fmt.Sprintf("\n[not all of the model's answer could be read: %s]", strings.Join(r.odd, ", "))
		a.summary = cut(a.summary, maxSummary-len(mark)) + mark
	}
	return a, true
}

// confidence is what the model says, and that of the rule if the model says nothing that
// can be meant.
func (r *reader) confidence() (float64, agent.SummarizedBy) {
	raw, said := r.fields["confidence"]
	if !said || string(raw) == "null" {
		return spoke, agent.SummarizedByRule
	}
	var c float64
	if json.Unmarshal(raw, &c) != nil || c < 0 || c > 1 {
		r.odd = append(r.odd, "confidence")
		return spoke, agent.SummarizedByRule
	}
	return c, agent.SummarizedByModel
}

// work is an item as models write it: the object, or only its text.
type work agent.WorkItem

func (w *work) UnmarshalJSON(b []byte) error {
	*w = work{}
	if json.Unmarshal(b, &w.What) == nil {
		return nil
	}
	var said struct{ What, Ref string }
	err := json.Unmarshal(b, &said)
	w.What, w.Ref = said.What, said.Ref
	return err
}

func (r *reader) items(name string) (items []agent.WorkItem) {
	for _, w := range list(r, name, func(w work) bool { return !blank(w.What) }) {
		items = append(items, agent.WorkItem{What: strings.TrimSpace(w.What), Ref: strings.TrimSpace(w.Ref)})
	}
	return items
}

func (r *reader) texts(name string) []string {
	return list(r, name, func(text string) bool { return !blank(text) })
}

// list reads the good entries of a field, or the one that stands there without a
// list around it.
func list[T any](r *reader, name string, good func(T) bool) (out []T) {
	raw, said := r.fields[name]
	if !said {
		return nil
	}
	var entries []json.RawMessage
	if json.Unmarshal(raw, &entries) != nil {
		entries = []json.RawMessage{raw}
	}
	for _, entry := range entries {
		var one T
		switch {
		case string(entry) == `""` || string(entry) == "null": // it says nothing
		case json.Unmarshal(entry, &one) == nil && good(one):
			out = append(out, one)
		case !slices.Contains(r.odd, name):
			r.odd = append(r.odd, name)
		}
	}
	return out
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }
