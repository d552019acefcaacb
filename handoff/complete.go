package handoff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
)

// How long what one agent says of itself may be. What is cut says so.
const (
	maxSummary = 16 << 10 // bytes
	maxText    = 2 << 10  // bytes of anything else
	maxEntries = 100      // of one list
	markRoom   = 128      // more than the mark of excerpt.Of takes, in bytes
)

// How sure a summary is to be right that no model gave a number for (catalogue
// HL-59): of an agent that had done or said something, and of one that had not.
const (
	spoke  = 0.78
	silent = 0.45
)

// What stands where nothing is known: the wire has no blank texts.
const (
	noTask   = "[its task is not known here]"
	noReason = "stopped"
	noWords  = "The agent was stopped before it had said anything."
)

// Complete makes the handoff of a run that was stopped. h is what the runtime
// knows for sure: nothing of it is changed by what the model said, and its items
// stay and come first. Its Summary is the last text of the model, empty if
// there is none; its children are folded in already. said is what the model
// answered to [Prompt], in whatever state; empty if it was not asked or did
// not answer. Where said is of no use, the summary is made by rule.
func Complete(h agent.Handoff, said string) agent.Handoff {
	h.V = agent.Version
	h.Task, h.Reason = cut(or(h.Task, noTask), maxText), cut(or(h.Reason, noReason), maxText)
	if a, ok := read(said); ok {
		h = tell(h, a)
	} else {
		h.Summary, h.Confidence = rule(h)
		h.ConfidenceBy, h.SummarizedBy = agent.SummarizedByRule, agent.SummarizedByRule
	}
	h.Summary = cut(h.Summary, maxSummary)
	h.Done, h.InFlight = itemsOf(h.Session, h.Done), itemsOf(h.Session, h.InFlight)
	h.NotStarted, h.Failed = itemsOf(h.Session, h.NotStarted), itemsOf(h.Session, h.Failed)
	h.OpenQuestions, h.Decisions = textsOf(h.OpenQuestions), textsOf(h.Decisions)
	h.Evidence = evidenceOf(h.Session, h.Evidence)
	return h
}

// tell adds what the model said to what the runtime knows.
func tell(h agent.Handoff, a account) agent.Handoff {
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

// rule sums up without a model.
func rule(h agent.Handoff) (summary string, confidence float64) {
	switch n := len(h.Done); {
	case !blank(h.Summary):
		return h.Summary, spoke
	case n > 0:
		return "The agent was stopped and did not sum up. The last thing that it did: " + h.Done[n-1].What, spoke
	}
	return noWords, silent
}

// join adds the model's items of a list, except for those that the runtime knows:
// they stay where the runtime put them, whatever list that is.
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

// itemSet are items, known by what they are and by where to look. One that does
// not say where is the same as any that does.
type itemSet map[string]bool

func (s itemSet) add(i agent.WorkItem) {
	what := folded(i.What)
	s[what], s[what+"\n"+folded(i.Ref)] = true, true
}

func (s itemSet) has(i agent.WorkItem) bool {
	what, ref := folded(i.What), folded(i.Ref)
	return s[what+"\n"+ref] || s[what+"\n"] || ref == "" && s[what]
}

// unite adds to own what is not in it yet; two of the same key are the same.
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

// folded is a text on one line: texts that differ in their white space are the same.
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

// few keeps the beginning of a list that is too long, and its mark as the last
// entry. The list is the caller's own.
func few[T any](list []T, mark func(left int) T) []T {
	if len(list) <= maxEntries {
		return list
	}
	kept := maxEntries - 1
	return append(list[:kept], mark(len(list)-kept))
}

func more(left int) string { return fmt.Sprintf("[cut here: %d more are not shown]", left) }

// cut keeps a text to most bytes, the mark included that says so.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return excerpt.Of(text, most-markRoom, len(text))
}

// refTo is where to look for the whole of what was cut: a session's transcript.
func refTo(session string) string { return "session:" + session }

func or(text, fallback string) string {
	if blank(text) {
		return fallback
	}
	return text
}
