package loop

import (
	"encoding/json"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/match"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Moment is what an input finds.
type Moment struct {
	At time.Time // the workflow's time
	// Revision is the one that the execution has pinned. The zero value is for tests of
	// what no revision changes.
	Revision int
	// ContinueAsNewSuggested means that the engine asks for a new execution, the history being long, and
	// NearHistoryLimit that the server will soon end the run for that.
	ContinueAsNewSuggested bool
	NearHistoryLimit       bool
	// Task tells one workflow task of the execution from the others; zero if nobody counts.
	Task int
	// MatchBudget are how much may still be compared with schemas in this task. What is compared
	// is taken from it, also if the input is refused. Nil is a budget for this input alone.
	MatchBudget *match.Budget
	// FirstTask means that this is the execution's first workflow task: until it is taken, the
	// server may have it done again from the run's beginning.
	FirstTask bool
}

// Input is something that happened.
type Input interface{ input() }

// The inputs.
type (
	// Begin is the run's first. Err says why what was asked for can't be meant.
	Begin struct {
		Session, Run string
		Start        agent.Start
		// BriefingText is the text of the start's briefing.
		BriefingText string
		// ChildStart is what the parent says of this one; nil for a root.
		ChildStart *wire.ChildStart
		Err        *agent.Error
	}
	// Opened brings what the run is made of, or why it can't be (Err).
	Opened struct {
		Spec *agent.Spec
		// Head, Seq and Version say where the session's log ends in the store, and
		// Numbers where its numbers stand.
		Head    string
		Seq     int64
		Version int64
		// Fence is that from which the run's writes go on.
		Fence    agent.Fence
		Counters remembered.Counters
		Receipts []remembered.Receipt
		// Backlog is what the session's runs before this one have left.
		Backlog remembered.Backlog
		// TerminatedRuns are executions of runs before this one that were ended from outside,
		// the latest first: their last events may not be stored.
		TerminatedRuns []string
		// Unrecovered says why the last events of a run before this one can't be looked for.
		Unrecovered string
		// StateVersion is the version of the session's state.
		StateVersion int
		// Imported is the export that the session came with.
		Imported string
		// Sources have tools that must be listed.
		Sources []string
		Err     *agent.Error
	}
	// Located brings the point in the session's log where the run begins, or why
	// there is none (Err).
	Located struct {
		Head     string
		Seq      int64
		Version  int64
		Chain    int64 // as [Sealed] has it
		Counters remembered.Counters
		Receipts []remembered.Receipt
		Backlog  remembered.Backlog
		// Forked names the point where it is not the log's end; Turn and Tools are
		// the counters there.
		Forked *agent.Forked
		Turn   int
		Tools  []agent.ToolCount
		// Migrated is the session's state where it had another version.
		Migrated *agent.Migrated
		// Recovered is the run whose last events were brought into the log; Lost says
		// why they could not be.
		Recovered, Unrecovered string
		Err                    *agent.Error
	}
	// Imported brings the state of a run that was suspended elsewhere, and its whole
	// Spec, or why they are refused (Err). The state's log is all stored here.
	Imported struct {
		Export string
		State  State
		Spec   *agent.Spec
		Err    *agent.Error
	}
	// Listed brings the tools of the sources, or why they can't be had (Err).
	Listed struct {
		Tools []agent.ToolSpec
		// Instructions follow the agent's own.
		Instructions string
		// Left has what is left out of each source, without the tools.
		Left []agent.ToolsChange
		Err  *agent.Error
	}
	// ModelReplied is the model's answer to the call of the event Ask.
	ModelReplied struct {
		AskSeq int64
		Reply  wire.Reply
	}
	// ModelFailed is a model call that no further attempt will mend.
	ModelFailed struct {
		AskSeq int64
		Err    *agent.Error
	}
	// ModelDelayed means that the model call of the event Ask is made again at a later time, and
	// what became of its last attempt.
	ModelDelayed struct {
		AskSeq int64
		Until  time.Time
		Err    *agent.Error
	}
	// ToolReturned is what became of a tool call. Hold is set where the step met a hold;
	// a call that it did not begin for that is skipped.
	ToolReturned struct {
		Result agent.ToolResult
		// FromRuntime means that the result is in the runtime's words: the step came to none.
		FromRuntime bool
		Hold        *agent.HoldRef
		// StateChanges are keys of the session's state that the call has set.
		StateChanges map[string]json.RawMessage
		// Question is what the tool asks a person, instead of a result.
		Question *agent.ToolQuestion
		// ToolsChange is set where the tool's source has other tools now.
		ToolsChange *agent.ToolsChange
	}
	// LocalToolSlow is a local call that took longer than local ones may.
	LocalToolSlow struct{ Call string }
	// Sealed means that the log is stored up to an event, under a digest, and that
	// the session's head has a version.
	Sealed struct {
		Head    string
		Version int64
		Seq     int64
		// Chain is that of the fence that was stored; zero for the one that was decided.
		Chain int64
		// BacklogBlobs are the events that waited when it was decided: the store has them.
		BacklogBlobs []remembered.BacklogBlob
	}
	// SealFailed means that it could not be; where the error is retryable, a later
	// attempt may succeed.
	SealFailed struct{ Err *agent.Error }
	// TimerFired means that the time of the last [SetTimer] has come.
	TimerFired struct{}
	// Cancel is Temporal's own cancellation of the workflow.
	Cancel struct{}
	// Terminated ends a run of which nothing is left but its state: somebody has terminated
	// its workflow, or the workflow's own time was up (Err).
	Terminated struct {
		Reason string
		Err    *agent.Error
	}
	// Continued is the first input of an execution that goes on with a carried state.
	Continued struct{}
	// CommandReceived is a verb. Its answer is an [Acknowledge].
	CommandReceived struct {
		Command agent.Command
		// ID makes a second arrival harmless; empty if it has none.
		ID string
		// PolicyChecked means that the worker has held it to its policy before it was recorded,
		// as it does with updates. What is not vouched for proves nothing.
		PolicyChecked bool
		// Proofs are who the tokens of the command prove to have said it.
		Proofs []Proof
	}
	// CommandRefused is a verb that was refused and could not be told.
	CommandRefused struct {
		Verb string
		Err  *agent.Error
	}
	// ChildStarted means that a child has begun, as a run, or why it could not (Err).
	ChildStarted struct {
		Session, Run string
		Err          *agent.Error
	}
	// ChildEnded is how a child ended.
	ChildEnded struct {
		Session string
		Outcome *agent.Outcome
	}
	// ChildReported is what a child says of itself, Ordered what the parent wants.
	ChildReported struct{ Report wire.ChildReport }
	ParentOrdered struct{ Order wire.ParentOrder }
	// ParentGranted is what the parent says of what this one may use.
	ParentGranted struct{ Order wire.GrantOrder }
	// ParentChecked reports whether the parent is gone.
	ParentChecked struct{ Gone bool }
	// HandoffMade is the handoff that a [MakeHandoff] asked for.
	HandoffMade struct{ Handoff agent.Handoff }
)

// Proof is what a token proves: who decides a request or, where that is empty, says the
// whole verb. Nonce tells one token from another until it expires.
type Proof struct {
	Request, Principal, Nonce string
	Expires                   time.Time
}

func (Begin) input()           {}
func (Opened) input()          {}
func (Located) input()         {}
func (Imported) input()        {}
func (Listed) input()          {}
func (ModelReplied) input()    {}
func (ModelFailed) input()     {}
func (ModelDelayed) input()    {}
func (ToolReturned) input()    {}
func (LocalToolSlow) input()   {}
func (Sealed) input()          {}
func (SealFailed) input()      {}
func (TimerFired) input()      {}
func (Cancel) input()          {}
func (Terminated) input()      {}
func (Continued) input()       {}
func (CommandReceived) input() {}
func (CommandRefused) input()  {}
func (HandoffMade) input()     {}
func (ChildStarted) input()    {}
func (ChildEnded) input()      {}
func (ChildReported) input()   {}
func (ParentOrdered) input()   {}
func (ParentGranted) input()   {}
func (ParentChecked) input()   {}

// Effect is something to be done. What comes of it is an input.
type Effect interface{ effect() }

// The effects.
type (
	// Open asks for [Opened].
	Open struct{ OpenArgs }
	// Locate asks for [Located].
	Locate struct{ LocateArgs }
	// Import asks for [Imported].
	Import struct{ ImportArgs }
	// List asks for [Listed].
	List struct{ ListArgs }
	// CallModel asks for [ModelReplied] or [ModelFailed]. The conversation is the log
	// up to the event Seq.
	CallModel struct {
		ModelArgs
		Seq int64
	}
	// CallTool asks for [ToolReturned]. Local calls may be made within the workflow's task.
	CallTool struct {
		ToolArgs
		Local bool
	}
	// CancelInFlight gives up the model and tool calls in flight. What comes back within
	// the grace is taken.
	CancelInFlight struct{ Grace agent.Duration }
	// Seal asks for [Sealed] or [SealFailed]: store the tail up to the event To,
	// which is its last. Within tells that this may be done in the workflow's task: the run has
	// nothing else to do.
	Seal struct {
		SealArgs
		To    int64
		Local bool
	}
	// SetTimer asks for a [TimerFired] at a time, instead of the one that was asked for
	// before; a zero time asks for none.
	SetTimer struct {
		At     time.Time
		Reason string // for who looks at the timer
	}
	// Broadcast gives up at once what this process, and the others, have in flight
	// of a session and of all below it. It may be lost.
	Broadcast struct {
		Session string
		N       int
		Verb    agent.Verb
		Grace   agent.Duration
	}
	// AwaitInFlight keeps the run's turn at the server for a moment, until what it has in
	// flight is back: behind a whole tree that stops at once it would wait long for
	// its next.
	AwaitInFlight struct{}
	// MakeHandoff asks for [HandoffMade]: the handoff of what is known for sure and of what
	// the model said.
	MakeHandoff struct {
		Known       agent.Handoff
		SummaryText string
		Children    []Child
	}
	// StartChild asks for [ChildStarted], and then for [ChildEnded].
	StartChild struct {
		Session, Agent, Task, Context string
		Limits                        agent.Limits
		Background                    bool
		ChildStart                    wire.ChildStart
	}
	// OrderChild and TellParent pass on to a sub-agent, or to the parent.
	OrderChild struct {
		Session string
		Order   wire.ParentOrder
	}
	ReportToParent struct {
		Session string
		Report  wire.ChildReport
	}
	// GrantChild tells a run below what it may use.
	GrantChild struct {
		Session string
		Order   wire.GrantOrder
	}
	// ForwardCommand says a verb to a run below.
	ForwardCommand struct {
		Session string
		Command agent.Command
	}
	// CheckChild asks for [ChildEnded] where a child is gone. Ending means that it has said so,
	// and is waited for.
	CheckChild struct {
		Session, Run string
		Ending       bool
	}
	// CheckParent asks for [ParentChecked].
	CheckParent struct{ Parent wire.Parent }
	// Acknowledge answers the verb that was just said.
	Acknowledge struct{ Ack agent.Ack }
	// Publish shows the run's status where listings look.
	Publish struct{}
	// ContinueAsNew ends this execution; the next one gets the state.
	ContinueAsNew struct{}
	// Complete ends the run.
	Complete struct{}
)

func (Open) effect()           {}
func (Locate) effect()         {}
func (Import) effect()         {}
func (List) effect()           {}
func (CallModel) effect()      {}
func (CallTool) effect()       {}
func (CancelInFlight) effect() {}
func (Seal) effect()           {}
func (SetTimer) effect()       {}
func (Broadcast) effect()      {}
func (AwaitInFlight) effect()  {}
func (MakeHandoff) effect()    {}
func (StartChild) effect()     {}
func (OrderChild) effect()     {}
func (ReportToParent) effect() {}
func (GrantChild) effect()     {}
func (ForwardCommand) effect() {}
func (CheckChild) effect()     {}
func (CheckParent) effect()    {}
func (Acknowledge) effect()    {}
func (Publish) effect()        {}
func (ContinueAsNew) effect()  {}
func (Complete) effect()       {}
