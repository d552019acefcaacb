package handoff

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// account is what the model said about its work.
type account struct {
	summary                          string
	done, inFlight, notBegun, failed []agent.WorkItem
	questions, decisions             []string
	evidence                         []agent.Evidence
	confidence                       float64
	confidenceBy                     agent.SummarizedBy
}

// read parses the model's answer; false if it has no summary. The object may be in a
// Markdown fence or between other words. Invalid parts are left out, and the summary then
// says so.
func read(said string) (account, bool) {
	_, fenced, _ := strings.Cut(said, "```")
	for _, text := range []string{said, fenced} {
		at := strings.IndexByte(text, '{')
		if at < 0 {
			continue
		}
		r := reader{}
		// A decoder stops after the object, so words behind it do no harm.
		if json.NewDecoder(strings.NewReader(text[at:])).Decode(&r.fields) != nil {
			continue
		}
		if a, ok := r.account(); ok {
			return a, true
		}
	}
	return account{}, false
}

// reader reads the fields one by one, so that an invalid one does not cost the others.
type reader struct {
	fields map[string]json.RawMessage
	odd    []string // fields with an invalid part
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
		// The mark must survive the limit of a summary's length.
		a.summary = cut(a.summary, maxSummary-len(mark)) + mark
	}
	return a, true
}

// confidence returns the model's number. Without a valid one it returns the rule's.
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

// list returns the valid entries of a field. A single entry may stand without a list
// around it.
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
		case string(entry) == `""` || string(entry) == "null": // an empty entry, which says nothing
		case json.Unmarshal(entry, &one) == nil && good(one):
			out = append(out, one)
		case !slices.Contains(r.odd, name):
			r.odd = append(r.odd, name)
		}
	}
	return out
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }
