package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// State is all that a run is. It leaves the process as JSON: continue-as-new
// carries it, and the query state shows it. The zero State is a run that has
// not begun.
type State struct {
	V       int    `json:"v"`
	Session string `json:"session"`
	Run     string `json:"run"`
	Phase   Phase  `json:"phase"`
	// Start is what was asked for, until the run has opened.
	Start *agent.Start `json:"start,omitempty"`
	// Spec is the recorded Spec without what only the model reads.
	Spec   *agent.Spec       `json:"spec,omitempty"`
	Limits agent.Limits      `json:"limits,omitzero"`
	Labels map[string]string `json:"labels,omitempty"`
	Task   string            `json:"task,omitempty"` // the first characters of what was asked

	Since   time.Time `json:"since"` // of the status
	Started time.Time `json:"started"`
	// Deadline is when the working time is over; zero where it has no limit.
	Deadline time.Time `json:"deadline,omitzero"`

	Turn  int               `json:"turn"`
	Asked time.Time         `json:"asked,omitzero"` // since when the model is asked
	Calls []Call            `json:"calls,omitempty"`
	Usage agent.Usage       `json:"usage"`
	Cost  agent.USD         `json:"cost_usd"`
	Tools []agent.ToolCount `json:"tools,omitempty"`
	Text  string            `json:"text,omitempty"` // the last that the model said

	// How often in a row the model has only talked, missed the schema, or sent a
	// reply that was of no use.
	Nudged   int    `json:"nudged,omitempty"`
	Repaired int    `json:"repaired,omitempty"`
	Retried  int    `json:"retried,omitempty"`
	Repeat   Repeat `json:"repeat,omitzero"`

	Log Log `json:"log"`
	// Outcome is set when the run is ending.
	Outcome *agent.Outcome `json:"outcome,omitempty"`
}

// Phase is what the machine waits for.
type Phase string

// The phases, in the order in which a run meets them.
const (
	New      Phase = ""
	Opening  Phase = "opening"  // for the Spec and the session's head
	Listing  Phase = "listing"  // for the tools of the Spec's sources
	Asking   Phase = "asking"   // for the model
	Working  Phase = "working"  // for tools
	Storing  Phase = "storing"  // for the store, which is behind: the next turn waits
	Carrying Phase = "carrying" // for the last seal before a new execution
	Ending   Phase = "ending"   // for the last seal of the run
	Ended    Phase = "ended"
)

// Log is a session's log as the run sees it: a chain of sealed chunks, of which
// it knows the last, and the events that are not sealed yet.
type Log struct {
	// Head names the last sealed chunk; empty at a session's beginning.
	Head string `json:"head,omitempty"`
	// Version is that of the session's head in the store.
	Version int64         `json:"version,omitempty"`
	Seq     int64         `json:"seq"` // of the last event
	Tail    []agent.Event `json:"tail,omitempty"`
	Bytes   int           `json:"bytes,omitempty"` // of the tail, about
	// Sealing is the number of the last event that is being sealed; zero while none is.
	Sealing int64 `json:"sealing,omitempty"`
}

// Call is a tool call of the turn.
type Call struct {
	agent.ToolCall
	State CallState `json:"state"`
	Since time.Time `json:"since,omitzero"`
	// Result is set when the call is done.
	Result *agent.ToolResult `json:"result,omitempty"`
	// Note is a remark of the runtime that is added to the result's text.
	Note string `json:"note,omitempty"`
}

// CallState is where a call stands.
type CallState string

// The states of a call.
const (
	Waiting CallState = "waiting" // for others to be done: there is a limit of calls at once
	Active  CallState = "running"
	Done    CallState = "done"
)

// Repeat counts equal calls in a row.
type Repeat struct {
	Digest string `json:"digest"`
	Count  int    `json:"count"`
}

// Sizes of the log's tail, in bytes: past the first it is sealed while the run
// goes on, past the second the run waits for the store.
const (
	sealAt = 256 << 10
	waitAt = 1 << 20
)

// clone returns a state whose slices can be changed without changing s. The
// log's tail is only ever appended to, so its clipped slice is enough.
func (s State) clone() State {
	s.Calls = slices.Clone(s.Calls)
	s.Tools = slices.Clone(s.Tools)
	s.Log.Tail = slices.Clip(s.Log.Tail)
	return s
}

// Status is the run's status on the wire. A run that is ending still runs: an
// end is not told before it is stored.
func (s State) Status() agent.Status {
	switch s.Phase {
	case New:
		return agent.Pending
	case Ended:
		return s.Outcome.Status
	}
	return agent.Running
}

// doing lists what the run is at.
func (s State) doing() []agent.Doing {
	doing := []agent.Doing{}
	switch s.Phase {
	case Asking:
		doing = append(doing, agent.Doing{Kind: agent.DoingModel, What: s.Spec.Model, Since: s.Asked})
	case Working:
		for _, c := range s.Calls {
			if c.State == Active {
				doing = append(doing, agent.Doing{Kind: agent.DoingTool, Call: c.ID, What: c.Tool, Since: c.Since})
			}
		}
	case Storing, Carrying, Ending:
		doing = append(doing, agent.Doing{Kind: agent.DoingStore, What: "transcript", Since: s.Since})
	}
	return doing
}

// View is the answer to the query status.
func (s State) View(now time.Time) agent.RunStatus {
	v := agent.RunStatus{
		V: agent.Version, Session: s.Session, Run: s.Run, Agent: s.agent(), Status: s.Status(), Since: s.Since, Turn: s.Turn,
		Doing: s.doing(), Labels: s.Labels, Usage: s.Usage, Cost: s.Cost, Limits: s.used(now), Seq: s.Log.Seq,
	}
	if s.Phase == Ended {
		v.Reason = s.Outcome.Reason
	}
	return v
}

func (s State) agent() string {
	if s.Spec != nil {
		return s.Spec.Name
	}
	if s.Start != nil {
		return s.Start.Agent
	}
	return ""
}

func (s State) used(now time.Time) (u agent.LimitsUsed) {
	if l := s.Limits.Turns; l > 0 {
		u.Turns = &agent.Used[int]{Used: s.Turn, Max: l}
	}
	if l := s.Limits.Tokens; l > 0 {
		u.Tokens = &agent.Used[int64]{Used: s.Usage.Total(), Max: l}
	}
	if l := s.Limits.CostUSD; l > 0 {
		u.CostUSD = &agent.Used[agent.USD]{Used: s.Cost, Max: l}
	}
	if l := s.Limits.WallClock; l > 0 {
		u.Clock = &agent.Used[agent.Duration]{Used: agent.Duration(now.Sub(s.Started).Round(time.Second)), Max: l}
	}
	return u
}

// Memo is what a listing shows of the run.
func (s State) Memo() agent.Memo {
	m := agent.Memo{
		V: agent.Version, Run: s.Run, Task: s.Task, Status: s.Status(), Since: s.Since,
		Turn: s.Turn, Cost: s.Cost, Labels: s.Labels,
	}
	if s.Phase == Ended {
		m.Reason = s.Outcome.Reason
	}
	return m
}
