package loop

import (
	"encoding/json"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/internal/wire"
)

// This file has the arguments of activities. One struct is both a part of the effect and the
// activity's input, so that no field can get lost between them.

// Caller says for which run an activity works.
type Caller struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	Turn    int    `json:"turn"`
	// KnownHolds are the holds that the run knew when the activity was scheduled. They don't stop
	// the activity.
	KnownHolds []agent.HoldRef `json:"known_holds,omitempty"`
	// Parent is the parent that the activity checks, because the parent's end ends this run. It
	// is nil for a root. It is also nil for a run that its parent waits for: the server cancels
	// that run when the parent closes, for any reason.
	Parent *wire.Parent `json:"parent,omitempty"`
	Trace  agent.Trace  `json:"trace,omitzero"`
	// Stateless means that the activity stores nothing, since the agent is stateless.
	Stateless bool `json:"stateless,omitempty"`
}

// ModelArgs are the arguments of the activity that calls the model.
type ModelArgs struct {
	Caller
	// AfterToolResult means that the run has made tool calls. It goes into a provider's error.
	AfterToolResult bool `json:"after_tool_result,omitempty"`
	// Note is a text at the end of the request, which is not in the log.
	Note string `json:"note,omitempty"`
	// LateAnswers says which answers came after their deadlines. It follows Note, and the log does not
	// have it.
	LateAnswers string `json:"late_answers,omitempty"`
	// Lessons ends the request, behind these two. The log does not have it.
	Lessons string `json:"lessons,omitempty"`
	// Next is what a hook says about this turn; nil for nothing.
	Next *agent.NextTurn `json:"next,omitempty"`
	// Skip is how many models of the chain are not asked, because they refused or a hook names another.
	Skip int `json:"skip,omitempty"`
	// Reasoning is the level that the agent's policy chooses; empty leaves it to the Spec and to Next.
	Reasoning agent.Reasoning `json:"reasoning,omitempty"`
	// Summary asks for a summary instead of a turn, without tools.
	Summary Summary `json:"summary,omitempty"`
	// Skills are read before the model is called; nil for none.
	Skills *wire.SkillOrder `json:"skills,omitempty"`
	// ForceFit cuts a conversation that is too long for the model's window. Without it the reply
	// is [wire.FinishTooLong].
	ForceFit bool `json:"force_fit,omitempty"`
	// Timeout bounds all attempts together; zero means the Spec's time.
	Timeout agent.Duration `json:"timeout,omitempty"`
}

// ToolArgs are the arguments of the activity that makes a tool call.
type ToolArgs struct {
	Caller
	Agent     string          `json:"agent"`
	Call      string          `json:"call"`
	OriginRun string          `json:"origin_run,omitempty"` // see OriginRun in [Call]
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Timeout bounds one attempt; the tool's context ends with it.
	Timeout  agent.Duration `json:"timeout"`
	Attempts int            `json:"attempts,omitempty"`
	// Edited means that a person has changed the arguments, so the activity checks the Spec's
	// rules again. Approver is the principal whose token approved the call; empty without a token.
	Edited   bool   `json:"edited,omitempty"`
	Approver string `json:"approver,omitempty"`
	// Principal is whose memory a call of the tool memory reads and writes; empty for other calls.
	Principal string `json:"principal,omitempty"`
	// Answers are a person's answers to the tool's own questions.
	Answers []agent.ToolAnswer `json:"answers,omitempty"`
	// Step is the path of a flow's step; empty outside of flows. Its idempotency key is made of
	// the path, so it stays the same if the step is made again.
	Step string `json:"step,omitempty"`
	// Check says which check the call makes; nil for other calls.
	Check *CheckArgs `json:"check,omitempty"`
	// Place is where the call works; nil means the worker's workspace.
	Place *wire.Place `json:"place,omitempty"`
}

// CheckArgs say which check of the Spec a call makes. The log has the Spec, and what is checked.
type CheckArgs struct {
	Point agent.CheckPoint `json:"point"`
	Name  string           `json:"name"`
	// Answer is the id of the call that is the answer: of finish, or of a tool that ends the run. Empty
	// means the text of the last reply.
	Answer string `json:"answer,omitempty"`
	// Stalled means that the answer is the last text of a run that a judge has ended because it repeats a
	// call. The reply with that call may have no text.
	Stalled bool `json:"stalled,omitempty"`
	// Subject is what the tool of a hook around a suspension or a resume is called with.
	Subject json.RawMessage `json:"subject,omitempty"`
	// Budget is the limit of turns, for a hook of a turn. TextCalls means that the model wrote the turn's
	// calls as text.
	Budget    *agent.TurnBudget `json:"budget,omitempty"`
	TextCalls bool              `json:"text_calls,omitempty"`
	// Reasoning is the level that the agent's policy chooses for a judge; empty leaves it to the Spec.
	Reasoning agent.Reasoning `json:"reasoning,omitempty"`
}

// FlowArgs are the arguments of the activity that asks a flow's function for its next steps.
type FlowArgs struct {
	Caller
	Agent string `json:"agent"`
	// Room is how many more steps the run may have open.
	Room int `json:"room"`
	// Space is how many bytes of new steps may wait, for people or events; zero means any number.
	Space int `json:"space,omitempty"`
	// Dropped are the paths of open steps whose results nobody waits for any more.
	Dropped []string `json:"dropped,omitempty"`
}

// OpenArgs are the arguments of the activity that reads the agent's Spec and claims the session's
// head.
type OpenArgs struct {
	Session string `json:"session"`
	Agent   string `json:"agent"`
	// Child means that another run started this one.
	Child bool `json:"child,omitempty"`
	// Copies means that the run begins with copies of its parent's files.
	Copies bool `json:"copies,omitempty"`
	// After is the session's previous run, as the start names it.
	After string `json:"after,omitempty"`
	// Judge is the judge that the start adds to the checks; nil for none.
	Judge *agent.Judge `json:"judge,omitempty"`
	// Input is what a flow's function gets as its input. It is empty if the function takes over
	// the input of another run.
	Input string `json:"input,omitempty"`
}

// RefreshArgs are the arguments of the activity that returns an agent's instructions in this worker's build.
type RefreshArgs struct {
	// Known is the digest of the instructions that the run has. The same ones need not come again. Empty
	// means that the text is needed in any case.
	Known string `json:"known,omitempty"`
	// Policy means that no resume waits for them: the agent says to refresh.
	Policy bool   `json:"policy,omitempty"`
	Agent  string `json:"agent"`
}

// ImportArgs are the arguments of the activity that reads the state of an exported run.
type ImportArgs struct {
	Session string `json:"session"`
	Agent   string `json:"agent"`
	Digest  string `json:"digest"` // of the signed export
}

// ListArgs are the arguments of the activity that asks tool sources for their tools.
type ListArgs struct {
	// Session and Run name the asking run: a source may list other tools for another user.
	Session string   `json:"session"`
	Run     string   `json:"run"`
	Sources []string `json:"sources"`
}

// LocateArgs are the arguments of the activity that finds the point in the session's log where a
// run begins. Before that it recovers the last events of runs that were terminated.
type LocateArgs struct {
	Session string           `json:"session"`
	From    *agent.StartFrom `json:"from,omitempty"` // nil for the log's end
	// TerminatedRuns are executions that were ended from outside, the latest first. Their last
	// events may not be stored.
	TerminatedRuns []string `json:"terminated_runs,omitempty"`
	// Reset means that the run's conversation begins empty.
	Reset bool `json:"reset,omitempty"`
	// NoMessage means that the start has no message. So the log must have one that the model can
	// answer.
	NoMessage bool `json:"no_message,omitempty"`
	// Task means that the run's task is that of the run before: it begins at a checkpoint without a
	// message, or is a daemon's whose answer an agent looks at.
	Task bool `json:"task,omitempty"`
	// Fence orders the write that the activity may make; the store refuses a lower one
	// (docs/store.md). The workflow sets Fence.By.
	Fence agent.Fence `json:"fence"`
	// StateVersion is the version of the session's state that the run's tools know.
	StateVersion int `json:"state_version,omitempty"`
}

// SealArgs are the arguments of the activity that stores the log's tail and moves the session's
// head. They describe the run at the time of the decision. The tail itself is not in them, so that
// it does not go through the history: the activity reads it from the run.
type SealArgs struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	// StoredChunk names the last chunk if all of the log is stored already: then only the head is
	// written. It is empty if there is something to seal.
	StoredChunk string       `json:"stored_chunk,omitempty"`
	Agent       string       `json:"agent"`
	Status      agent.Status `json:"status"` // running, suspended, or the run's end
	// Version is the version of the session's head, as far as the run knows. Fence orders this
	// write; the store refuses a lower one (docs/store.md). The workflow sets Fence.By.
	Version  int64                `json:"version"`
	Fence    agent.Fence          `json:"fence"`
	Counters remembered.Counters  `json:"counters,omitzero"`
	Receipts []remembered.Receipt `json:"receipts,omitempty"`
	// Backlog is the part of the backlog that is new. It follows the events in BacklogBlobs, which
	// the store has already.
	Backlog      remembered.Backlog       `json:"backlog,omitzero"`
	BacklogBlobs []remembered.BacklogBlob `json:"backlog_blobs,omitempty"`
	// StateVersion is the version of the session's state.
	StateVersion int `json:"state_version,omitempty"`
	// Retention is how long the session is kept after the run has ended; zero means forever.
	Retention agent.Duration `json:"retention,omitempty"`
	// Imported is the digest of the export that the session was imported from; empty if none.
	Imported string `json:"imported,omitempty"`
}

// caller returns what the run's activities are told of it.
func (s *step) caller() Caller {
	c := Caller{Session: s.Session, Run: s.Run, Turn: s.Turn.N, KnownHolds: s.Holds.Known, Trace: s.TraceSegment.Trace, Stateless: s.Log.Unstored}
	if b := s.Parent.Start; b != nil && (b.Background || b.Outlives) {
		c.Parent = &b.Parent
	}
	return c
}

// locate asks for the point in the log where the run begins.
func (s *step) locate(behind []string) {
	s.Log.nextFence() // recovering events of terminated runs is a write, too
	from, reset := s.Origin.Start.From, s.Origin.Start.Carry == agent.CarryReset
	s.do(Locate{LocateArgs{
		Session: s.Session, From: from, TerminatedRuns: behind, NoMessage: s.hasNoMessage(), Task: s.needsFormerTask() || s.continuesTask(), Reset: reset, Fence: s.Log.Fence, StateVersion: s.Spec.StateVersion,
	}})
}

// seal stores the log as it is now; final is the run's last seal.
func (s *step) seal(final bool) {
	s.Log.startSeal() // first: it numbers the fence that the effect carries
	// Local only if the run has nothing else to do. Never in the first workflow task: the server
	// may run that task again from the start (see Moment.FirstTask).
	e := Seal{To: s.Log.Seq, Local: !s.FirstTask && (!final && s.Suspensions.atRest() || final && s.alone()), SealArgs: SealArgs{
		Session: s.Session, Run: s.Run, Agent: s.agent(), Status: agent.StatusRunning, Version: s.Log.Version, Fence: s.Log.Fence, Counters: s.Counters,
		Receipts: s.Receipts(final), StateVersion: s.Spec.StateVersion, Retention: s.Spec.Retention, Imported: s.Origin.Imported,
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
	if e.Local && s.Holds.Unanswered != nil {
		e.Report = true
		s.Holds.answerAfterSeal()
	}
	s.do(e)
}

// callModel calls the model with the conversation up to the event AskSeq of [Turn]. It fills in the
// arguments that are the same for each call.
func (s *step) callModel(m ModelArgs) {
	m.Caller, m.AfterToolResult, m.Skip = s.caller(), len(s.Calls.ownCounts()) > 0, s.Recovery.Skip
	if m.Next != nil {
		m.Skip = max(m.Skip, slices.Index(s.Spec.Models(), m.Next.Model))
	}
	if m.Summary == "" {
		m.Lessons = s.Lessons.text(s.Spec)
	}
	if m.Next == nil || m.Next.Reasoning == "" {
		m.Reasoning = s.Spec.ReasoningFor(m.Summary.task())
	}
	s.do(CallModel{ModelArgs: m, Seq: s.Turn.AskSeq})
}

// callTool makes a tool call. If regular is true, it is a regular activity even for a local tool.
func (s *step) callTool(i int, regular bool) {
	c := s.Calls.List[i]
	tool := s.toolOf(c)
	outside := s.temporalCall(c)
	timeout := tool.Timeout
	if c.Step.Timeout > 0 {
		timeout = c.Step.Timeout
	}
	if timeout <= 0 {
		timeout = defaultTimeout(outside)
	}
	// For edited arguments the activity reads the log, to check the rules: too slow for a local one.
	local := tool.Local && !c.Edited && !regular && s.mayCallLocally()
	if local {
		s.TaskLoad.local(s.Task)
	}
	if outside != nil { // its arguments are in this task's answer, as a child's start is
		s.TaskLoad.start(s.Task, rawJSONLen(c.Arguments))
	}
	estimate, _ := s.estimatedCharge(c)
	s.do(CallTool{Local: local, Temporal: outside, Estimate: estimate, ToolArgs: ToolArgs{
		Caller: s.caller(), Agent: s.agent(), Call: c.ID, OriginRun: c.OriginRun, Tool: c.Tool, Arguments: c.Arguments, Timeout: timeout,
		Attempts: max(1, tool.Attempts, c.Step.Attempts), Edited: c.Edited, Approver: c.Approver, Answers: c.Answers, Step: s.stepPath(c), Check: s.checkArgs(c),
		Principal: s.memoryOf(c), Place: s.place(),
	}})
}
