package agent

import (
	"iter"
	"slices"
)

// Handoff is what a run leaves for whoever continues its work: one that was stopped, or one that
// failed and whose [Definition.Recovery] hands off. It says what every agent of the tree learned,
// the run's own first (docs/wire.md §6).
type Handoff struct {
	V       int    `json:"v"`
	Session string `json:"session"`
	Run     string `json:"run"`
	Agent   string `json:"agent"`
	Status  Status `json:"status"` // how this agent ended
	Task    string `json:"task"`
	Reason  string `json:"reason"`
	Summary string `json:"summary"`
	// Rationale says why a failed run hands off, and Blockers what kept it from its task. Both
	// are empty for a stopped run.
	Rationale string   `json:"rationale,omitempty"`
	Blockers  []string `json:"blockers,omitempty"`
	// NextSteps are what the model suggests to do next.
	NextSteps  []string   `json:"suggested_next_steps,omitempty"`
	Done       []WorkItem `json:"done,omitempty"`
	InFlight   []WorkItem `json:"in_flight,omitempty"`
	NotStarted []WorkItem `json:"not_started,omitempty"`
	Failed     []WorkItem `json:"failed,omitempty"`
	// OpenQuestions are what the agent would have asked. Requests are what it did ask.
	OpenQuestions []string  `json:"open_questions,omitempty"`
	Requests      []Request `json:"requests,omitempty"`
	// UnknownEffects are calls that may or may not have had their effect.
	UnknownEffects []UnknownEffect `json:"unknown_effects,omitempty"`
	Evidence       []Evidence      `json:"evidence,omitempty"`
	Decisions      []string        `json:"decisions,omitempty"`
	// Artifacts are the last version of each artifact of this agent's session.
	Artifacts []Artifact `json:"artifacts,omitempty"`
	Usage     Usage      `json:"usage"`
	Cost      USD        `json:"cost_usd"`
	// Tree is what the run has used with all runs below it.
	Tree      Tally     `json:"tree,omitzero"`
	Remaining Remaining `json:"remaining"`
	// Confidence is how sure the summary is to be right, from 0 to 1. ConfidenceBy says
	// who set it: the model, or a rule that measures nothing. The rule sets 0.78 if the
	// agent has written or done something, else 0.45. An empty ConfidenceBy means the
	// writer of the handoff.
	Confidence   float64      `json:"confidence"`
	ConfidenceBy SummarizedBy `json:"confidence_by,omitempty"`
	SummarizedBy SummarizedBy `json:"summarized_by"`
	Children     []Handoff    `json:"children,omitempty"`
}

// WorkItem is a piece of work.
type WorkItem struct {
	What string `json:"what"`
	Ref  string `json:"ref,omitempty"` // where to look
	By   string `json:"by,omitempty"`  // the session that did it
}

// Evidence is a source for the summary.
type Evidence struct {
	Kind string `json:"kind"` // file, url or call
	Ref  string `json:"ref"`
	Note string `json:"note,omitempty"`
}

// UnknownEffect is a call that may or may not have had its effect.
type UnknownEffect struct {
	Call  string `json:"call"`
	Tool  string `json:"tool"`
	Key   string `json:"key"`   // its idempotency key
	Since string `json:"since"` // RFC 3339
}

// Remaining is what the run had not used; a limit that was not set is absent.
type Remaining struct {
	Turns  int   `json:"turns,omitempty"`
	Tokens int64 `json:"tokens,omitempty"`
	Cost   USD   `json:"cost_usd,omitempty"`
}

// SummarizedBy is who wrote a summary or set its confidence.
type SummarizedBy string

// The authors of summaries.
const (
	SummarizedByModel SummarizedBy = "model"
	SummarizedByRule  SummarizedBy = "rule"
)

// All yields the handoff and then, depth first, those of its children.
func (h *Handoff) All() iter.Seq[*Handoff] {
	return func(yield func(*Handoff) bool) { h.walk(yield) }
}

func (h *Handoff) walk(yield func(*Handoff) bool) bool {
	if !yield(h) {
		return false
	}
	for i := range h.Children {
		if !h.Children[i].walk(yield) {
			return false
		}
	}
	return true
}

// size returns about how many bytes a handoff takes; 0 for nil.
func (h *Handoff) size() (n int) {
	if h == nil {
		return 0
	}
	for one := range h.All() {
		n += 1024 + len(one.Task) + len(one.Summary) + len(one.Rationale) + artifactsSize(one.Artifacts)
		for _, text := range slices.Concat(one.Blockers, one.NextSteps) {
			n += 8 + len(text)
		}
		for _, items := range [][]WorkItem{one.Done, one.InFlight, one.NotStarted, one.Failed} {
			for _, i := range items {
				n += 32 + len(i.What) + len(i.Ref)
			}
		}
	}
	return n
}
