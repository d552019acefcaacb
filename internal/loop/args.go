package loop

import (
	"encoding/json"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/internal/wire"
)

// What a step is given is decided here, in one struct that is both the effect and the
// activity's input: a field that one has and the other lacks can't be.

// Caller is what every step of a run is told of it.
type Caller struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	Turn    int    `json:"turn"`
	// KnownHolds are the holds that the run knows of: they stop no step that begins after them.
	KnownHolds []agent.HoldRef `json:"known_holds,omitempty"`
	// Parent is the parent at which the step looks, since its end ends this run; nil for
	// a root, and for a run that its parent waits for: the server cancels that one when the
	// parent closes, however that happens.
	Parent *wire.Parent `json:"parent,omitempty"`
	Trace  agent.Trace  `json:"trace,omitzero"`
}

// ModelArgs is what a step is given that asks the model.
type ModelArgs struct {
	Caller
	// AfterToolResult goes into the error of a provider that fails.
	AfterToolResult bool `json:"after_tool_result,omitempty"`
	// Note is said behind everything, and stands in no log.
	Note string `json:"note,omitempty"`
	// Summary asks for a summary instead of a turn, without tools.
	Summary Summary `json:"summary,omitempty"`
	// ForceFit cuts what is too long for the model's window; else the reply says that it is.
	ForceFit bool `json:"force_fit,omitempty"`
	// Timeout is how long all of it may take; zero means as long as the Spec says.
	Timeout agent.Duration `json:"timeout,omitempty"`
}

// ToolArgs is what a step is given that makes a tool call.
type ToolArgs struct {
	Caller
	Agent     string          `json:"agent"`
	Call      string          `json:"call"`
	OriginRun string          `json:"origin_run,omitempty"` // the run that asked for it, if it is another
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

// OpenArgs is what a step is given that reads what a run is made of, and claims the
// session's head.
type OpenArgs struct {
	Session string `json:"session"`
	Agent   string `json:"agent"`
	// Child means that another run gave it the work.
	Child bool `json:"child,omitempty"`
	// After is the session's run before, as the start names it.
	After string `json:"after,omitempty"`
}

// ImportArgs is what a step is given that reads the state of a run which was elsewhere.
type ImportArgs struct {
	Session string `json:"session"`
	Agent   string `json:"agent"`
	Digest  string `json:"digest"` // of the signed export
}

// ListArgs is what a step is given that asks tool sources for their tools.
type ListArgs struct {
	// Session and Run are for whom: what a source lists may depend on who has signed in.
	Session string   `json:"session"`
	Run     string   `json:"run"`
	Sources []string `json:"sources"`
}

// LocateArgs is what a step is given that finds the point in a session's log where a run
// begins, after the last events of a run that was ended from outside were brought there.
type LocateArgs struct {
	Session string           `json:"session"`
	From    *agent.StartFrom `json:"from,omitempty"` // nil for the log's end
	// TerminatedRuns are executions whose runs were ended from outside, the latest first.
	TerminatedRuns []string `json:"terminated_runs,omitempty"`
	// Reset means that the run wants to know nothing of what was before.
	Reset bool `json:"reset,omitempty"`
	// NoMessage means that the run brings no message: the model has to have something
	// to answer.
	NoMessage bool `json:"no_message,omitempty"`
	// Fence is that of the write which the step may make; who performs it names the decision.
	Fence agent.Fence `json:"fence"`
	// StateVersion is the version of the session's state that the run's tools know.
	StateVersion int `json:"state_version,omitempty"`
}

// SealArgs is what a step is given that stores the log and moves the session's head. It says
// how the run stands as the seal is decided, and not what to store.
type SealArgs struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	// StoredChunk names the chunk that ends there, where all of the log is stored already:
	// then only the head is put. Empty if there is something to seal.
	StoredChunk string       `json:"stored_chunk,omitempty"`
	Agent       string       `json:"agent"`
	Status      agent.Status `json:"status"` // running, suspended, or the end that the run has come to
	// Version is that of the session's head as the run knows it, and Fence that of this
	// write; who performs it names the decision.
	Version  int64                `json:"version"`
	Fence    agent.Fence          `json:"fence"`
	Counters remembered.Counters  `json:"counters,omitzero"`
	Receipts []remembered.Receipt `json:"receipts,omitempty"`
	// Backlog is what is new of it, behind what is Kept.
	Backlog      remembered.Backlog       `json:"backlog,omitzero"`
	BacklogBlobs []remembered.BacklogBlob `json:"backlog_blobs,omitempty"`
	// StateVersion is the version of the session's state.
	StateVersion int `json:"state_version,omitempty"`
	// Imported is the export that the session came with.
	Imported string `json:"imported,omitempty"`
}

// toolTime is how long a call may take whose tool names no time.
const toolTime = agent.Duration(10 * time.Minute)

// caller is the run as its steps are told of it.
func (s *step) caller() Caller {
	c := Caller{Session: s.Session, Run: s.Run, Turn: s.Turn.N, KnownHolds: s.Holds.Known, Trace: s.TraceSegment.Trace}
	if b := s.Parent.Start; b != nil && b.Background {
		c.Parent = &b.Parent
	}
	return c
}

// locate finds the point where the run begins.
func (s *step) locate(behind []string) {
	s.Log.nextFence()
	from, reset := s.Origin.Start.From, s.Origin.Start.Carry == agent.CarryReset
	s.do(Locate{LocateArgs{
		Session: s.Session, From: from, TerminatedRuns: behind, NoMessage: s.hasNoMessage(), Reset: reset, Fence: s.Log.Fence, StateVersion: s.Spec.StateVersion,
	}})
}

// seal stores the log as it is.
func (s *step) seal(final bool) {
	s.Log.startSeal()
	e := Seal{To: s.Log.Seq, Local: !s.FirstTask && (!final && s.Suspensions.atRest() || final && s.alone()), SealArgs: SealArgs{
		Session: s.Session, Run: s.Run, Agent: s.agent(), Status: agent.StatusRunning, Version: s.Log.Version, Fence: s.Log.Fence, Counters: s.Counters,
		Receipts: s.Receipts(final), StateVersion: s.Spec.StateVersion, Imported: s.Origin.Imported,
	}}
	e.Backlog, e.BacklogBlobs = s.unstoredBacklog()
	switch {
	case final:
		e.Status = s.End.Outcome.Status
	case s.Suspensions.atRest():
		e.Status = agent.StatusSuspended
	}
	if !s.Log.hasUnsealed() {
		e.StoredChunk = s.Log.Head
	}
	s.do(e)
}

// callModel asks the model for what is set in a step, up to the last event.
func (s *step) callModel(m ModelArgs) {
	m.Caller, m.AfterToolResult = s.caller(), len(s.Calls.ownCounts()) > 0
	s.do(CallModel{ModelArgs: m, Seq: s.Turn.AskSeq})
}

// callTool makes a call; regular calls are made by a step of their own, whatever the tool
// says.
func (s *step) callTool(i int, regular bool) {
	c := s.Calls.List[i]
	tool, _ := s.Spec.Tool(c.Tool)
	timeout := tool.Timeout
	if timeout <= 0 {
		timeout = toolTime
	}
	local := tool.Local && !c.Edited && !regular && s.mayCallLocally()
	if local {
		s.TaskLoad.local(s.Task)
	}
	s.do(CallTool{Local: local, ToolArgs: ToolArgs{
		Caller: s.caller(), Agent: s.agent(), Call: c.ID, OriginRun: c.OriginRun, Tool: c.Tool, Arguments: c.Arguments, Timeout: timeout,
		Attempts: max(1, tool.Attempts), Edited: c.Edited, Approver: c.Approver, Answers: c.Answers,
	}})
}
