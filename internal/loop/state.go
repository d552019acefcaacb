package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// State is all that a run is, in parts. Each part has a file of its own, and only that
// file changes the part's fields. State leaves the process as JSON: continue-as-new
// carries it, and the query state shows it. The zero State is a run that has not begun.
type State struct {
	V       int    `json:"v"`
	Session string `json:"session"`
	Run     string `json:"run"`
	// Phase is the run's own machine; Turn and each of Calls have one too.
	Phase  RunPhase `json:"phase"`
	Origin Origin   `json:"origin"`
	// Spec is the recorded Spec without what only the model reads.
	Spec *agent.Spec `json:"spec,omitempty"`
	// Counters count over the session's life and are never used again.
	Counters remembered.Counters `json:"counters"`

	Log      Log      `json:"log"`
	Turn     Turn     `json:"turn"`
	Calls    Calls    `json:"calls,omitzero"`
	Budget   Budget   `json:"budget,omitzero"`
	Ledger   Ledger   `json:"ledger,omitzero"`
	TaskLoad TaskLoad `json:"task_load,omitzero"`
	Messages Messages `json:"messages,omitzero"`
	Daemon   Daemon   `json:"daemon,omitzero"`

	Holds       Holds       `json:"holds,omitzero"`
	Requests    Requests    `json:"requests,omitzero"`
	Park        *Park       `json:"park,omitempty"` // nil while the run is not parked
	Suspensions Suspensions `json:"suspensions"`

	Parent   Parent   `json:"parent,omitzero"`
	Children Children `json:"children,omitzero"`

	Verbs Verbs `json:"verbs,omitzero"`
	End   End   `json:"end,omitzero"`

	// NextTimer is when the machine wants its next Tick; zero while nothing is due.
	NextTimer time.Time `json:"next_timer,omitzero"`
	// TraceSegment is where the spans of the run's work hang.
	TraceSegment agent.TraceSegment `json:"trace_segment,omitzero"`
}

// clone returns a state whose slices and pointers can be changed without changing s.
func (s State) clone() State {
	s.Calls = s.Calls.clone()
	s.Holds = s.Holds.clone()
	s.Requests = s.Requests.clone()
	s.Messages = s.Messages.clone()
	s.Verbs = s.Verbs.clone()
	s.Children = s.Children.clone()
	s.Ledger = s.Ledger.clone()
	s.Suspensions = s.Suspensions.clone()
	s.Park = copied(s.Park)
	s.End = s.End.clone()
	return s
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// HasNoLog reports whether the run has no part in the log yet.
func (s *State) HasNoLog() bool {
	switch s.Phase {
	case RunNew, RunOpening, RunLocating, RunImporting, RunListing:
		return true
	}
	return false
}

// decided reports whether the run's outcome is decided.
func (s *State) decided() bool { return s.Phase == RunEnding || s.Phase == RunEnded }

// ready reports whether the run is between two turns.
func (s *State) ready() bool { return s.Phase == RunActive && s.Turn.Phase == TurnReady }

// phaseName names the phase for refusals and traces: the turn's while the run lives.
func (s *State) phaseName() string {
	switch {
	case s.Phase != RunActive:
		return string(s.Phase)
	case s.Turn.Phase == TurnReady:
		return "ready"
	}
	return string(s.Turn.Phase)
}

func (s *State) redacted() bool { return s.Spec != nil && s.Spec.Redact }

// agent is the name of the run's agent, or the one that was asked for.
func (s *State) agent() string {
	if s.Spec != nil {
		return s.Spec.Name
	}
	if s.Origin.Start != nil {
		return s.Origin.Start.Agent
	}
	return ""
}
