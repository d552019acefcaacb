package handoff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
)

// Limits of what one agent says of itself. A text that is cut says so.
const (
	maxSummary = 16 << 10 // bytes
	maxText    = 2 << 10  // bytes of anything else
	maxEntries = 100      // of one list
	markRoom   = 128      // more than the mark of excerpt.Of needs, in bytes
)

// The confidence in a summary without a number from the model: spoke if the agent had
// done or said something, silent if not.
const (
	spoke  = 0.78
	silent = 0.45
)

// Texts for what is unknown: the wire has no blank texts.
const (
	noTask   = "[its task is not known here]"
	noReason = "stopped"
)

// Complete returns the handoff of a stopped run.
//
// h has what the runtime knows. The model changes none of it, and its items come first.
// Its Summary is the model's last text, if there is one; its Children are set already.
// said is the model's answer to [Prompt], in whatever form; empty if the model was not
// asked or did not answer. If said is useless, the summary is made by rule.
func Complete(h agent.Handoff, said string) agent.Handoff {
	h.V = agent.Version
	h.Task, h.Reason = cut(or(h.Task, noTask), maxText), cut(or(h.Reason, noReason), maxText)
	if a, ok := read(said); ok {
		h = tell(h, a)
	} else {
		h.Summary, h.Confidence = rule(h)
		h.ConfidenceBy, h.SummarizedBy = agent.SummarizedByRule, agent.SummarizedByRule
	}
	// The limits come last, so that they hold for what the model said too.
	h.Summary, h.Rationale = cut(h.Summary, maxSummary), cut(h.Rationale, maxText)
	h.Blockers, h.NextSteps = textsOf(h.Blockers), textsOf(h.NextSteps)
	h.Done, h.InFlight = itemsOf(h.Session, h.Done), itemsOf(h.Session, h.InFlight)
	h.NotStarted, h.Failed = itemsOf(h.Session, h.NotStarted), itemsOf(h.Session, h.Failed)
	h.OpenQuestions, h.Decisions = textsOf(h.OpenQuestions), textsOf(h.Decisions)
	h.Evidence = evidenceOf(h.Session, h.Evidence)
	return h
}

// tell adds what the model said to what the runtime knows.
func tell(h agent.Handoff, a account) agent.Handoff {
	// An item that the runtime knows stays in its list: a model may report as done what
	// the runtime saw fail.
	known := slices.Concat(h.Done, h.InFlight, h.NotStarted, h.Failed)
	h.Done, h.InFlight = join(h.Done, a.done, known), join(h.InFlight, a.inFlight, known)
	h.NotStarted, h.Failed = join(h.NotStarted, a.notBegun, known), join(h.Failed, a.failed, known)
	h.OpenQuestions = unite(h.OpenQuestions, a.questions, folded)
	h.Decisions = unite(h.Decisions, a.decisions, folded)
	h.Evidence = unite(h.Evidence, a.evidence, func(e agent.Evidence) string { return e.Kind + " " + folded(e.Ref) })
	h.Summary, h.SummarizedBy = a.summary, agent.SummarizedByModel
	h.Confidence, h.ConfidenceBy = a.confidence, a.confidenceBy
	return h
}

// rule returns a summary without a model.
func rule(h agent.Handoff) (summary string, confidence float64) {
	ended := "The agent was stopped"
	if h.Status == agent.StatusFailed {
		ended = "The agent failed"
	}
	switch n := len(h.Done); {
	case !blank(h.Summary):
		return h.Summary, spoke
	case n > 0:
		return ended + " and did not sum up. The last thing that it did: " + h.Done[n-1].What, spoke
	}
	return ended + " before it had said anything.", silent
}

// join adds the model's items to a list, except those that the runtime knows, in whatever
// list.
func join(own, more, known []agent.WorkItem) []agent.WorkItem {
	all, seen := slices.Clip(own), itemSet{}
	for _, i := range known {
		seen.add(i)
	}
	for _, i := range more {
		if !seen.has(i) {
			seen.add(i)
			all = append(all, i)
		}
	}
	return all
}

// itemSet is a set of items, compared by What and Ref. An item without a Ref equals any
// with the same What.
type itemSet map[string]bool

func (s itemSet) add(i agent.WorkItem) {
	what := folded(i.What)
	s[what], s[what+"\n"+folded(i.Ref)] = true, true
}

func (s itemSet) has(i agent.WorkItem) bool {
	what, ref := folded(i.What), folded(i.Ref)
	return s[what+"\n"+ref] || s[what+"\n"] || ref == "" && s[what]
}

// unite adds to own the entries that it does not have, compared by key.
func unite[T any](own, more []T, key func(T) string) []T {
	all, seen := slices.Clip(own), map[string]bool{}
	for _, one := range own {
		seen[key(one)] = true
	}
	for _, one := range more {
		if k := key(one); !seen[k] {
			seen[k] = true
			all = append(all, one)
		}
	}
	return all
}

// folded returns a text on one line. Texts that differ only in white space become equal.
func folded(text string) string { return strings.Join(strings.Fields(text), " ") }

func itemsOf(session string, items []agent.WorkItem) []agent.WorkItem {
	var out []agent.WorkItem
	for _, i := range items {
		if !blank(i.What) {
			out = append(out, agent.WorkItem{What: cut(i.What, maxText), Ref: cut(strings.TrimSpace(i.Ref), maxText), By: session})
		}
	}
	return few(out, func(left int) agent.WorkItem {
		return agent.WorkItem{What: more(left), Ref: refTo(session), By: session}
	})
}

func textsOf(texts []string) []string {
	var out []string
	for _, text := range texts {
		if !blank(text) {
			out = append(out, cut(strings.TrimSpace(text), maxText))
		}
	}
	return few(out, more)
}

func evidenceOf(session string, evidence []agent.Evidence) []agent.Evidence {
	var out []agent.Evidence
	for _, e := range evidence {
		out = append(out, agent.Evidence{Kind: e.Kind, Ref: cut(e.Ref, maxText), Note: cut(strings.TrimSpace(e.Note), maxText)})
	}
	return few(out, func(left int) agent.Evidence {
		return agent.Evidence{Kind: "call", Ref: refTo(session), Note: more(left)}
	})
}

// few keeps the beginning of a list that is too long, with a mark as the last entry. It
// may change the list's array.
func few[T any](list []T, mark func(left int) T) []T {
	if len(list) <= maxEntries {
		return list
	}
	kept := maxEntries - 1
	return append(list[:kept], mark(len(list)-kept))
}

func more(left int) string { return fmt.Sprintf("[cut here: %d more are not shown]", left) }

// cut limits a text to most bytes, including the mark.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return excerpt.Of(text, most-markRoom, len(text))
}

// refTo names the place of what was cut: the session's transcript.
func refTo(session string) string { return "session:" + session }

func or(text, fallback string) string {
	if blank(text) {
		return fallback
	}
	return text
}
