package loop

import (
	"encoding/json"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/match"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Moment is the workflow's time, history size and revision when an input is stepped. A replay of
// the workflow must pass the same values.
type Moment struct {
	At time.Time // the workflow's time
	// Revision is the revision that the execution has pinned. Tests of what no revision changes
	// may leave it zero.
	Revision int
	// ContinueAsNewSuggested means that Temporal suggests it, because the history is long.
	// NearHistoryLimit means that the server will soon terminate the run for its long history.
	ContinueAsNewSuggested bool
	NearHistoryLimit       bool
	// Task is different for each workflow task of the execution; zero if the caller counts none.
	Task int
	// MatchBudget is how much may still be compared with schemas in this workflow task. Each
	// comparison uses it up, even if the input is refused. Nil means a budget for this input alone.
	MatchBudget *match.Budget
	// FirstTask means that this is the execution's first workflow task. If this task fails, the
	// server may retry it as a new first task, so no local activity in it may store anything.
	FirstTask bool
}

// Input is something that happened. [Step] refuses one that comes too late with [agent.CodeStale].
type Input interface{ input() }

// The inputs.
type (
	// Begin is the run's first input. Err says why the start is invalid.
	Begin struct {
		Session, Run string
		Start        agent.Start
		// BriefingText is the start's briefing as the model reads it.
		BriefingText string
		// ChildStart is what the parent passes to the run; nil for a root.
		ChildStart *wire.ChildStart
		Err        *agent.Error
	}
	// Opened has the agent's Spec and the session's head, or why the run can't begin (Err).
	Opened struct {
		Spec *agent.Spec
		// Head, Seq and Version say where the session's log ends in the store. Counters are
		// the session's last numbers.
		Head    string
		Seq     int64
		Version int64
		// Fence is the fence of the run's claim; its writes continue from it.
		Fence    agent.Fence
		Counters remembered.Counters
		Receipts []remembered.Receipt
		// Backlog is what the session's previous runs have accepted and not dealt with.
		Backlog remembered.Backlog
		// TerminatedRuns are executions of previous runs that were ended from outside, the
		// latest first. Their last events may not be stored.
		TerminatedRuns []string
		// Unrecovered says why nobody can look for the last events of a previous run.
		Unrecovered string
		// StateVersion is the version of the session's state.
		StateVersion int
		// Imported is the digest of the export that the session was imported from.
		Imported string
		// Sources are tool sources that must be asked for their tools.
		Sources []string
		Err     *agent.Error
	}
	// Located has the point in the session's log where the run begins, or why there is none
	// (Err).
	Located struct {
		Head     string
		Seq      int64
		Version  int64
		Chain    int64 // see [Sealed]
		Counters remembered.Counters
		Receipts []remembered.Receipt
		Backlog  remembered.Backlog
		// Forked names the point if it is not the log's end. Turn and Tools are the counts
		// at the point.
		Forked *agent.Forked
		Turn   int
		Tools  []agent.ToolCount
		// Migrated is the session's state, if it had another version before.
		Migrated *agent.Migrated
		// Recovered is the run whose last events were added to the log. Unrecovered says why
		// they could not be.
		Recovered, Unrecovered string
		Err                    *agent.Error
	}
	// Imported has the state of a run that was suspended elsewhere, and its whole Spec, or why
	// the import is refused (Err). The log of that run is stored here already.
	Imported struct {
		Export string
		State  State
		Spec   *agent.Spec
		Err    *agent.Error
	}
	// Listed has the tools of the sources, or why they are not available (Err).
	Listed struct {
		Tools []agent.ToolSpec
		// Instructions follow the agent's own.
		Instructions string
		// Left names, for each source, the tools that are left out.
		Left []agent.ToolsChange
		Err  *agent.Error
	}
	// ModelReplied is the model's reply to the call with this AskSeq (see [Turn]).
	ModelReplied struct {
		AskSeq int64
		Reply  wire.Reply
	}
	// ModelFailed means that a model call has failed for good.
	ModelFailed struct {
		AskSeq int64
		Err    *agent.Error
	}
	// ModelDelayed means that a model call will be retried at a later time. Err is the error of
	// its last attempt.
	ModelDelayed struct {
		AskSeq int64
		Until  time.Time
		Err    *agent.Error
	}
	// ToolReturned is the result of a tool call. Hold is set if the activity met a hold. If it
	// did not call the tool because of the hold, the result's status is skipped.
	ToolReturned struct {
		Result agent.ToolResult
		// FromRuntime means that the runtime wrote the result's text, because the activity
		// has failed.
		FromRuntime bool
		Hold        *agent.HoldRef
		// StateChanges are keys of the session's state that the call has set.
		StateChanges map[string]json.RawMessage
		// Question is set if the tool asks a person something instead of returning a result.
		Question *agent.ToolQuestion
		// ToolsChange is set if the tool's source has other tools now.
		ToolsChange *agent.ToolsChange
	}
	// LocalToolSlow means that a call took longer than a local activity may.
	LocalToolSlow struct{ Call string }
	// Sealed means that the log is stored up to the event Seq in a chunk named Head, and that
	// the session's head has the version Version.
	Sealed struct {
		Head    string
		Version int64
		Seq     int64
		// Chain is the stored fence's chain; zero if it is the chain that the run used.
		Chain int64
		// BacklogBlobs name the events that waited when the seal was decided: the store has
		// them.
		BacklogBlobs []remembered.BacklogBlob
	}
	// SealFailed means that a seal has failed. If the error is retryable, a later attempt may
	// succeed.
	SealFailed struct{ Err *agent.Error }
	// TimerFired means that the time of the last [SetTimer] has come.
	TimerFired struct{}
	// Cancel is Temporal's cancellation of the workflow, for example by `temporal workflow cancel`.
	Cancel struct{}
	// Terminated ends a run whose workflow is gone: it was terminated, or timed out (Err). The
	// session's next run steps this input with the state that it has recovered.
	Terminated struct {
		Reason string
		Err    *agent.Error
	}
	// Continued is the first input of an execution that continues a run as new.
	Continued struct{}
	// CommandReceived is a verb. If it is not refused, its answer is an [Acknowledge].
	CommandReceived struct {
		Command agent.Command
		// ID makes a second arrival harmless; it may be empty.
		ID string
		// PolicyChecked means that the worker has checked its policy before the command was
		// recorded, as it does for updates. A signal is recorded unchecked: the machine holds
		// it to the policy that the run began with, and it has no Proofs.
		PolicyChecked bool
		// Proofs are what the command's tokens prove.
		Proofs []Proof
	}
	// CommandRefused is a verb that was refused, if its sender could not be told.
	CommandRefused struct {
		Verb string
		Err  *agent.Error
	}
	// ChildStarted means that a child has begun with the run id Run, or says why it could not
	// (Err).
	ChildStarted struct {
		Session, Run string
		Err          *agent.Error
	}
	// ChildEnded is a child's outcome, as Temporal tells it.
	ChildEnded struct {
		Session string
		Outcome *agent.Outcome
	}
	// ChildReported is a child's report to this run, and ParentOrdered an order of the parent.
	// Both are signals: they may be forged, late or repeated.
	ChildReported struct{ Report wire.ChildReport }
	ParentOrdered struct{ Order wire.ParentOrder }
	// ParentGranted is the parent's message about what this run may use.
	ParentGranted struct{ Order wire.GrantOrder }
	// ParentChecked is the result of a [CheckParent].
	ParentChecked struct{ Gone bool }
	// HandoffMade is the handoff that a [MakeHandoff] asked for.
	HandoffMade struct{ Handoff agent.Handoff }
)

// Proof is what one token proves: that Principal decides the request Request, or the whole command
// if Request is empty. Nonce identifies the token until it expires, so that it is used once.
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

// Effect is something that the caller of [Step] has to do. Its result comes back as an input.
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
	// CallModel asks for [ModelReplied] or [ModelFailed], with any number of [ModelDelayed] before.
	// The conversation is the log up to the event Seq.
	CallModel struct {
		ModelArgs
		Seq int64
	}
	// CallTool asks for [ToolReturned], or for [LocalToolSlow] if Local. Local means that a local
	// activity may make the call.
	CallTool struct {
		ToolArgs
		Local bool
	}
	// CancelInFlight cancels the model and tool calls in flight. Results that come within the
	// grace are kept.
	CancelInFlight struct{ Grace agent.Duration }
	// Seal asks for [Sealed] or [SealFailed]: it stores the tail up to its last event, To. Local
	// means that a local activity may store it, because the run has nothing else to do.
	Seal struct {
		SealArgs
		To    int64
		Local bool
	}
	// SetTimer asks for a [TimerFired] at a time, and replaces the timer before; a zero time asks
	// for none.
	SetTimer struct {
		At     time.Time
		Reason string // for people who look at the timer in the history
	}
	// Broadcast cancels at once all calls in flight of a session and of all runs below it, in this
	// process and in others. It may be lost, so an order to each child follows.
	Broadcast struct {
		Session string
		N       int
		Verb    agent.Verb
		Grace   agent.Duration
	}
	// AwaitInFlight keeps the workflow task open for up to a second until the cancelled activities
	// return. Otherwise the run's next task could wait behind those of a whole tree that stops.
	AwaitInFlight struct{}
	// MakeHandoff asks for [HandoffMade]. The handoff is made of what the machine knows (Known),
	// the model's summary, and the children's handoffs.
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
	// OrderChild sends an order to a child; ReportToParent sends a report to the parent.
	OrderChild struct {
		Session string
		Order   wire.ParentOrder
	}
	ReportToParent struct {
		Session string
		Report  wire.ChildReport
	}
	// GrantChild tells a child what it may use.
	GrantChild struct {
		Session string
		Order   wire.GrantOrder
	}
	// ForwardCommand sends a verb to a run below this one, at any depth.
	ForwardCommand struct {
		Session string
		Command agent.Command
	}
	// CheckChild asks for [ChildEnded] if a child has ended. Ending means that the child has
	// reported its end, so the check waits for it a while.
	CheckChild struct {
		Session, Run string
		Ending       bool
	}
	// CheckParent asks for [ParentChecked].
	CheckParent struct{ Parent wire.Parent }
	// Acknowledge answers the verb of this step.
	Acknowledge struct{ Ack agent.Ack }
	// Publish updates the run's status in listings: its memo and search attributes.
	Publish struct{}
	// ContinueAsNew ends this execution; the next one gets the state and begins with [Continued].
	ContinueAsNew struct{}
	// Complete ends the run: the workflow returns its outcome.
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
