package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// State is all that a run is, in parts. Each part has a file of its own, and only that
// file changes the part's fields. State leaves the process as JSON: continue-as-new
// carries it, and the query state shows it. The zero State is a run that has not begun.
type State struct {
	V       int    `json:"v"`
	Session string `json:"session"`
	Run     string `json:"run"`
	// Life is the run's own machine; Turn and each of Calls have one too.
	Life   Life   `json:"life"`
	Origin Origin `json:"origin"`
	// Spec is the recorded Spec without what only the model reads.
	Spec *agent.Spec `json:"spec,omitempty"`
	// Numbers count over the session's life and are never used again.
	Numbers agent.Numbers `json:"numbers"`

	Log      Log      `json:"log"`
	Turn     Turn     `json:"turn"`
	Calls    Calls    `json:"calls,omitzero"`
	Budget   Budget   `json:"budget,omitzero"`
	Ledger   Ledger   `json:"ledger,omitzero"`
	Load     Load     `json:"load,omitzero"`
	Messages Messages `json:"messages,omitzero"`
	Daemon   Daemon   `json:"daemon,omitzero"`

	Holds    Holds    `json:"holds,omitzero"`
	Requests Requests `json:"requests,omitzero"`
	Park     *Park    `json:"park,omitempty"` // nil while the run is not parked
	Rest     Rest     `json:"rest"`

	Parent   Parent   `json:"parent,omitzero"`
	Children Children `json:"children,omitzero"`

	Verbs Verbs `json:"verbs,omitzero"`
	End   End   `json:"end,omitzero"`

	// Wake is when the machine wants its next Tick; zero while nothing is due.
	Wake time.Time `json:"wake,omitzero"`
	// Stint is where the spans of the run's work hang.
	Stint agent.Stint `json:"stint,omitzero"`
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
	s.Rest = s.Rest.clone()
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

// Unwritten reports whether the run has no part in the log yet.
func (s *State) Unwritten() bool {
	switch s.Life {
	case New, Opening, Locating, Importing, Listing:
		return true
	}
	return false
}

// over reports whether the run's outcome is decided.
func (s *State) over() bool { return s.Life == Ending || s.Life == Ended }

// ready reports whether the run is between two turns.
func (s *State) ready() bool { return s.Life == Live && s.Turn.Phase == Ready }

// at names the phase for refusals and traces: the turn's while the run lives.
func (s *State) at() string {
	switch {
	case s.Life != Live:
		return string(s.Life)
	case s.Turn.Phase == Ready:
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
