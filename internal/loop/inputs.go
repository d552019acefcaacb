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
	// Revision is the revision that the execution has pinned. If no revision changes
	// what a test looks at, the test may leave it zero.
	Revision int
	// ContinueAsNewSuggested means that Temporal suggests to continue as new, because the
	// history is long. HistoryHalfFull means over 20,000 events or 15 MB. NearHistoryLimit means
	// over 40,000 events or 30 MB: the server will soon terminate the run.
	ContinueAsNewSuggested bool
	HistoryHalfFull        bool
	NearHistoryLimit       bool
	// Task is different for each workflow task of the execution; zero if the caller counts none.
	Task int
	// MatchBudget is how many steps of comparing values with schemas are left in this workflow task. Each
	// comparison uses it up, even if the input is refused. Nil means a budget for this input alone.
	MatchBudget *match.Budget
	// FirstTask means that this is the execution's first workflow task. If its worker dies,
	// Temporal runs the task again from its start. The run then opens again, and would take its
	// own first write for another run's. So no local activity in this task may store anything.
	FirstTask bool
	// SignalsWaiting means that signals came before this input and are not taken yet.
	SignalsWaiting bool
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
		// ParentSession is the session of the workflow that started this one, as Temporal knows it,
		// whatever ChildStart says; empty for a root. The start may name files of that session.
		ParentSession string
		Err           *agent.Error
	}
	// Opened has the agent's Spec and the session's head, or why the run can't begin (Err).
	Opened struct {
		Spec *agent.Spec
		// Head, Seq and Version say where the session's log ends in the store. Counters are
		// the session's last numbers.
		Head    string
		Seq     int64
		Version int64
		// Fence is the fence with which the run has claimed the session's head. Its next
		// writes use the numbers after it.
		Fence    agent.Fence
		Counters remembered.Counters
		Receipts []remembered.Receipt
		// Backlog is what the session's previous runs have accepted, and no turn has taken.
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
		// Parts replace those of the start, if that has files of the parent's session: the files are
		// copied into this session, and a text stands for each that is gone.
		Parts []agent.Part
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
		Chain    int64 // see [Sealed.Chain]
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
		// Lessons are what the session's runs have learned, up to the point.
		Lessons []agent.Lesson
		// Task is what the run before was asked, if LocateArgs.Task says so.
		Task string
		// TaskOf is the agent that Task was given to; empty if it hides its task in listings.
		TaskOf string
		// Artifacts are the last versions of the session's artifacts at the point.
		Artifacts []agent.Artifact
		// Skills are those that are active at the point, without their instructions.
		Skills []agent.SkillUpdate
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
	// Refreshed has the agent's newest instructions, or says why there are none (Err). Policy is that of
	// [RefreshArgs]. Same means that they are those that the run has, and are not here.
	Refreshed struct {
		Instructions string
		Policy, Same bool
		Err          *agent.Error
	}
	// WorkspaceMade means that the run's own workspace is there, or says why not (Err).
	WorkspaceMade struct{ Err *agent.Error }
	// WorkspaceEnded says what became of it.
	WorkspaceEnded struct{ Outcome agent.WorkspaceOutcome }
	// Looked has what the look N has seen, or why nothing (Err).
	Looked struct {
		N    int64
		Seen agent.FilesSeen
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
	// ToolReturned is the result of a tool call. Hold is the hold that stopped the activity: the
	// session's own, or an ancestor's, which the run may not know yet (spread.go); nil if none
	// did. If the activity did not call the tool because of it, the result's status is skipped.
	ToolReturned struct {
		Result agent.ToolResult
		// FromRuntime means that the runtime wrote the result's text, because the activity
		// has failed.
		FromRuntime bool
		Hold        *agent.HoldRef
		// StateChanges are keys of the session's state that the call has set.
		StateChanges map[string]json.RawMessage
		// Artifacts are the files that the call saves as artifacts.
		Artifacts []agent.File
		// Skill is what a call of the tool skill has loaded; with a Reason, what it has ended.
		Skill *agent.SkillUpdate
		// Question is set if the tool asks a person something instead of returning a result.
		Question *agent.ToolQuestion
		// ToolsChange is set if the tool's source has other tools now.
		ToolsChange *agent.ToolsChange
		// Charges are what a flow's model call has used. Estimate is that of its [CallTool].
		Charges  []agent.Charge
		Estimate agent.Charge
		// Missing is set if no worker was found whose build has what a flow's step needs.
		Missing *agent.Error
	}
	// FlowAnswered is a flow's answer to the asking AskSeq: its next steps or its end.
	FlowAnswered struct {
		AskSeq int64
		Answer wire.FlowAnswer
	}
	// FlowSlow means that a flow did not answer within the time of a local activity. FlowFailed
	// means that it could not be asked, or did not answer at all.
	FlowSlow   struct{ AskSeq int64 }
	FlowFailed struct {
		AskSeq int64
		Err    *agent.Error
	}
	// LocalToolSlow means that a call took longer than a local activity may.
	LocalToolSlow struct{ Call string }
	// Sealed means that the log is stored up to the event Seq in a chunk named Head, and that
	// the session's head has the version Version.
	Sealed struct {
		Head    string
		Version int64
		Seq     int64
		// Chain is the chain of the fence that the store has now (see [agent.Fence]); zero if it is
		// the chain of this run.
		Chain int64
		// BacklogBlobs name the events that waited when the seal was decided: the store has
		// them.
		BacklogBlobs []remembered.BacklogBlob
	}
	// SealFailed means that a seal has failed. If the error is retryable, a later attempt may
	// succeed.
	SealFailed struct{ Err *agent.Error }
	// InFlightAwaited is the result of an [AwaitInFlight]. Ended means that the cancelled activities have
	// ended: their results come with the next workflow task.
	InFlightAwaited struct{ Ended bool }
	// SealSlow means that a local seal did not succeed, and that a regular activity stores the log.
	SealSlow struct{}
	// TimerFired means that the time of the last [SetTimer] has come.
	TimerFired struct{}
	// SignalsTaken means that the signals that waited at [TakeSignals] are taken.
	SignalsTaken struct{}
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
		// ID may be empty. If a command comes twice with one ID, the second changes nothing.
		ID string
		// PolicyChecked means that the worker has checked its policy before the command was
		// recorded, as it does for updates. A signal is recorded unchecked: the machine checks
		// it against the policy that the run began with, and it has no Proofs.
		PolicyChecked bool
		// Proofs are what the command's tokens prove.
		Proofs []Proof
	}
	// CommandRefused is a signal that was refused, or a verb that could not be passed on to a
	// child. Its sender gets no answer, so the machine records it.
	CommandRefused struct {
		Verb string
		By   string // empty if the payload can't be read
		Err  *agent.Error
	}
	// ChildStarted means that a child has started with the run id Run, or says why it could not
	// (Err).
	ChildStarted struct {
		Session, Run string
		Err          *agent.Error
	}
	// ChildEnded is a child's outcome, as Temporal tells it.
	ChildEnded struct {
		Session string
		Outcome *agent.Outcome
		// Files are the files that the child gives back: parts with copies of this session, and a text
		// for each that is gone.
		Files []agent.Part
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
func (Refreshed) input()       {}
func (WorkspaceMade) input()   {}
func (WorkspaceEnded) input()  {}
func (Looked) input()          {}
func (ModelReplied) input()    {}
func (ModelFailed) input()     {}
func (ModelDelayed) input()    {}
func (ToolReturned) input()    {}
func (LocalToolSlow) input()   {}
func (InFlightAwaited) input() {}
func (SealSlow) input()        {}
func (FlowAnswered) input()    {}
func (FlowSlow) input()        {}
func (FlowFailed) input()      {}
func (Sealed) input()          {}
func (SealFailed) input()      {}
func (TimerFired) input()      {}
func (SignalsTaken) input()    {}
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
