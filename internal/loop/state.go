package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// State is a run, in parts. Each part has a file, and only that file changes the part's
// fields. State is JSON outside of the process: continue-as-new hands it on, and the query
// state shows it. The zero State is a run that has not started.
type State struct {
	V       int    `json:"v"`
	Session string `json:"session"`
	Run     string `json:"run"`
	// Phase is the phase of the run. Turn has a phase of its own, and each of Calls has a
	// state.
	Phase  RunPhase `json:"phase"`
	Origin Origin   `json:"origin"`
	// Spec is the agent's definition as this run began with it, with the tools that sources
	// have changed since. It is nil until it is read. The texts for the model are in the
	// log, and not here once the run has started.
	Spec *agent.Spec `json:"spec,omitempty"`
	// Counters number things over the session's life. No number is used twice.
	Counters remembered.Counters `json:"counters"`

	Log      Log      `json:"log"`
	Turn     Turn     `json:"turn"`
	Recovery Recovery `json:"recovery,omitzero"`
	Lessons  Lessons  `json:"lessons,omitzero"`
	Loops    Loops    `json:"loops,omitzero"`
	Adaptive Adaptive `json:"adaptive,omitzero"`
	Calls    Calls    `json:"calls,omitzero"`
	Checks   Checks   `json:"checks,omitzero"`
	Hooks    Hooks    `json:"hooks,omitzero"`
	Flow     Flow     `json:"flow,omitzero"`
	Budget   Budget   `json:"budget,omitzero"`
	Ledger   Ledger   `json:"ledger,omitzero"`
	TaskLoad TaskLoad `json:"task_load,omitzero"`
	Messages Messages `json:"messages,omitzero"`
	Daemon   Daemon   `json:"daemon,omitzero"`
	Watch    Watch    `json:"watch,omitzero"`

	Artifacts Artifacts `json:"artifacts,omitzero"`
	Skills    Skills    `json:"skills,omitzero"`
	Notebook  Notebook  `json:"notebook,omitzero"`
	Progress  Progress  `json:"progress,omitzero"`
	RunReport RunReport `json:"run_report,omitzero"`
	Workspace Workspace `json:"workspace,omitzero"`

	Holds       Holds       `json:"holds,omitzero"`
	Requests    Requests    `json:"requests,omitzero"`
	Late        Late        `json:"late,omitzero"`
	Park        *Park       `json:"park,omitempty"` // nil while the run is not parked
	Suspensions Suspensions `json:"suspensions"`
	// SuspensionHooks is zero unless the Spec names hooks around suspensions, or a resume waits for newer
	// instructions.
	SuspensionHooks SuspensionHooks `json:"suspension_hooks,omitzero"`

	Refreshing Refreshing `json:"refreshing,omitzero"`

	Parent   Parent   `json:"parent,omitzero"`
	Children Children `json:"children,omitzero"`

	Verbs Verbs `json:"verbs,omitzero"`
	End   End   `json:"end,omitzero"`

	// NextTimer is when the next [TimerFired] is due; zero while none is.
	NextTimer time.Time `json:"next_timer,omitzero"`
	// TraceSegment is the parent of the spans of the run's work.
	TraceSegment agent.TraceSegment `json:"trace_segment,omitzero"`
}

// unshare replaces the slices and pointers of s by copies, which can be changed without changing the
// state from which s was copied.
func (s *State) unshare() {
	// It does not copy Log: appendEvent takes care of its tail, which may be long.
	s.Calls = s.Calls.clone()
	s.Recovery = s.Recovery.clone()
	s.Lessons = s.Lessons.clone()
	s.Loops = s.Loops.clone()
	s.Adaptive = s.Adaptive.clone()
	s.Checks = s.Checks.clone()
	s.Hooks = s.Hooks.clone()
	s.Holds = s.Holds.clone()
	s.Requests = s.Requests.clone()
	s.Late = s.Late.clone()
	s.Messages = s.Messages.clone()
	s.Verbs = s.Verbs.clone()
	s.Children = s.Children.clone()
	s.Ledger = s.Ledger.clone()
	s.Suspensions = s.Suspensions.clone()
	s.SuspensionHooks = s.SuspensionHooks.clone()
	s.Park = copied(s.Park)
	s.End = s.End.clone()
	s.RunReport = s.RunReport.clone()
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// HasNoLog reports whether the run has no part in the session's log yet.
func (s *State) HasNoLog() bool {
	switch s.Phase {
	case RunNew, RunOpening, RunLocating, RunImporting, RunListing:
		return true
	}
	return false
}

// outcomeDecided reports whether the run's outcome is decided.
func (s *State) outcomeDecided() bool { return s.Phase == RunEnding || s.Phase == RunEnded }

// ready reports whether the run is between two turns.
func (s *State) ready() bool { return s.Phase == RunActive && s.Turn.Phase == TurnReady }

// phaseName returns the phase for refusals and traces: the turn's phase while the run is
// active.
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

// agent returns the name of the run's agent, or the requested name before the run has its
// Spec.
func (s *State) agent() string {
	if s.Spec != nil {
		return s.Spec.Name
	}
	if s.Origin.Start != nil {
		return s.Origin.Start.Agent
	}
	return ""
}
