package loop

import (
	"encoding/json"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// What a step is given is decided here, in one struct that is both the effect and the
// activity's input: a field that one has and the other lacks can't be.

// Caller is what every step of a run is told of it.
type Caller struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	Turn    int    `json:"turn"`
	// Heard are the holds that the run knows of: they stop no step that begins after them.
	Heard []agent.Heard `json:"heard,omitempty"`
	// Parent is the run above at which the step looks, since its end ends this run; nil for
	// a root, and for a run that its parent waits for: the server cancels that one when the
	// parent closes, however that happens.
	Parent *agent.Parent `json:"parent,omitempty"`
	Trace  agent.Trace   `json:"trace,omitzero"`
}

// ModelStep is what a step is given that asks the model.
type ModelStep struct {
	Caller
	// AfterToolResult goes into the error of a provider that fails.
	AfterToolResult bool `json:"after_tool_result,omitempty"`
	// Note is said behind everything, and stands in no log.
	Note string `json:"note,omitempty"`
	// Summary asks for a summary instead of a turn, without tools.
	Summary Summary `json:"summary,omitempty"`
	// ForceFit cuts what is too long for the model's window; else the reply says that it is.
	ForceFit bool `json:"force_fit,omitempty"`
	// Within is how long all of it may take; zero means as long as the Spec says.
	Within agent.Duration `json:"within,omitempty"`
}

// ToolStep is what a step is given that makes a tool call.
type ToolStep struct {
	Caller
	Agent     string          `json:"agent"`
	Call      string          `json:"call"`
	Of        string          `json:"of,omitempty"` // the run that asked for it, if it is another
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Timeout caps the attempt; the tool's context ends with it.
	Timeout  agent.Duration `json:"timeout"`
	Attempts int            `json:"attempts,omitempty"`
	// Edited arguments are a person's, who proved to be Approver if one is named: the
	// Spec's rules are asked once more.
	Edited   bool   `json:"edited,omitempty"`
	Approver string `json:"approver,omitempty"`
	// Answers are those to what the tool has asked.
	Answers []agent.ToolAnswer `json:"answers,omitempty"`
}

// OpenStep is what a step is given that reads what a run is made of, and claims the
// session's head.
type OpenStep struct {
	Session string `json:"session"`
	Agent   string `json:"agent"`
	// Child tells that another run gave it the work.
	Child bool `json:"child,omitempty"`
	// After is the session's run before, as the start names it.
	After string `json:"after,omitempty"`
}

// ImportStep is what a step is given that reads the state of a run which was elsewhere.
type ImportStep struct {
	Session string `json:"session"`
	Agent   string `json:"agent"`
	Digest  string `json:"digest"` // of the signed export
}

// ListStep is what a step is given that asks tool sources for their tools.
type ListStep struct {
	// Session and Run are for whom: what a source lists may depend on who has signed in.
	Session string   `json:"session"`
	Run     string   `json:"run"`
	Sources []string `json:"sources"`
}

// LocateStep is what a step is given that finds the point in a session's log where a run
// begins, after the last events of a run that was ended from outside were brought there.
type LocateStep struct {
	Session string      `json:"session"`
	From    *agent.From `json:"from,omitempty"` // nil for the log's end
	// Behind are executions whose runs were ended from outside, the latest first.
	Behind []string `json:"behind,omitempty"`
	// Reset tells that the run wants to know nothing of what was before.
	Reset bool `json:"reset,omitempty"`
	// Silent tells that the run brings no message: the model has to have something
	// to answer.
	Silent bool `json:"silent,omitempty"`
	// Fence is that of the write which the step may make; who performs it names the decision.
	Fence agent.Fence `json:"fence"`
	// State is the version of the session's state that the run's tools know.
	State int `json:"state,omitempty"`
}

// SealStep is what a step is given that stores the log and moves the session's head. It says
// how the run stands as the seal is decided, and not what to store.
type SealStep struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	// Stored names the chunk that ends there, where all of the log is stored already:
	// then only the head is put. Empty where there is something to seal.
	Stored string       `json:"stored,omitempty"`
	Agent  string       `json:"agent"`
	Status agent.Status `json:"status"` // running, suspended, or the end that the run has come to
	// Version is that of the session's head as the run knows it, and Fence that of this
	// write; who performs it names the decision.
	Version int64         `json:"version"`
	Fence   agent.Fence   `json:"fence"`
	Numbers agent.Numbers `json:"numbers,omitzero"`
	Posts   []agent.Post  `json:"posts,omitempty"`
	// Inbox is what is new of it, behind what is Kept.
	Inbox agent.Inbox  `json:"inbox,omitzero"`
	Kept  []agent.Kept `json:"kept,omitempty"`
	// State is the version of the session's state.
	State int `json:"state,omitempty"`
	// Imported is the export that the session came with.
	Imported string `json:"imported,omitempty"`
}

// toolTime is how long a call may take whose tool names no time.
const toolTime = agent.Duration(10 * time.Minute)

// caller is the run as its steps are told of it.
func (s *step) caller() Caller {
	c := Caller{Session: s.Session, Run: s.Run, Turn: s.Turn.N, Heard: s.Holds.Heard, Trace: s.Stint.Trace}
	if b := s.Parent.Birth; b != nil && b.Background {
		c.Parent = &b.Parent
	}
	return c
}

// locateStep finds the point where the run begins.
func (s *step) locateStep(behind []string) {
	s.Log.writes()
	from, reset := s.Origin.Start.From, s.Origin.Start.Carry == agent.CarryReset
	s.do(Locate{LocateStep{
		Session: s.Session, From: from, Behind: behind, Silent: s.silent(), Reset: reset, Fence: s.Log.Fence, State: s.Spec.StateVersion,
	}})
}

// sealStep stores the log as it is.
func (s *step) sealStep(final bool) {
	s.Log.seals()
	e := Seal{To: s.Log.Seq, Within: !s.First && (!final && s.Rest.resting() || final && s.alone()), SealStep: SealStep{
		Session: s.Session, Run: s.Run, Agent: s.agent(), Status: agent.Running, Version: s.Log.Version, Fence: s.Log.Fence, Numbers: s.Numbers,
		Posts: s.Remembered(final), State: s.Spec.StateVersion, Imported: s.Origin.Imported,
	}}
	e.Inbox, e.Kept = s.waiting()
	switch {
	case final:
		e.Status = s.End.Outcome.Status
	case s.Rest.resting():
		e.Status = agent.Suspended
	}
	if !s.Log.open() {
		e.Stored = s.Log.Head
	}
	s.do(e)
}

// modelStep asks the model for what is set in a step, up to the last event.
func (s *step) modelStep(m ModelStep) {
	m.Caller, m.AfterToolResult = s.caller(), len(s.Calls.own()) > 0
	s.do(CallModel{ModelStep: m, Seq: s.Turn.Ask})
}

// toolStep makes a call; regular calls are made by a step of their own, whatever the tool
// says.
func (s *step) toolStep(i int, regular bool) {
	c := s.Calls.List[i]
	tool, _ := s.Spec.Tool(c.Tool)
	timeout := tool.Timeout
	if timeout <= 0 {
		timeout = toolTime
	}
	local := tool.Local && !c.Edited && !regular && s.mayCallLocally()
	if local {
		s.Load.local(s.Task)
	}
	s.do(CallTool{Local: local, ToolStep: ToolStep{
		Caller: s.caller(), Agent: s.agent(), Call: c.ID, Of: c.Of, Tool: c.Tool, Arguments: c.Arguments, Timeout: timeout,
		Attempts: max(1, tool.Attempts), Edited: c.Edited, Approver: c.Approver, Answers: c.Answers,
	}})
}
