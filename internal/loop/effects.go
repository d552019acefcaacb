package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

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
	// Refresh asks for [Refreshed].
	Refresh struct{ RefreshArgs }
	// MakeWorkspace asks for [WorkspaceMade], and EndWorkspace for [WorkspaceEnded].
	MakeWorkspace struct{ MakeWorkspaceArgs }
	EndWorkspace  struct{ EndWorkspaceArgs }
	// Look asks for [Looked], with its number N.
	Look struct {
		LookArgs
		N int64
	}
	// CallModel asks for [ModelReplied] or [ModelFailed], with any number of [ModelDelayed] before.
	// The conversation is the log up to the event Seq.
	CallModel struct {
		ModelArgs
		Seq int64
	}
	// CallTool asks for [ToolReturned], or for [LocalToolSlow] if Local. Local means that a local
	// activity may make the call.
	CallTool struct {
		// Estimate is what is charged for a flow's model call of which nothing is known; zero for
		// other calls.
		Estimate agent.Charge
		ToolArgs
		Local bool
		// Temporal is what the workflow itself calls; nil if an activity of ours calls a tool.
		Temporal *agent.TemporalCall
	}
	// AskFlow asks a flow's function for its next steps: for [FlowAnswered], [FlowFailed] or
	// [FlowSlow]; with Regular, for FlowSlow only if the run is held. What its steps came to is in the log up to the event AskSeq.
	// Without Regular a local activity asks it.
	AskFlow struct {
		FlowArgs
		AskSeq  int64
		Regular bool
	}
	// CancelCall cancels one tool call in flight, whose result the run does not need any more.
	CancelCall struct{ Call string }
	// CancelInFlight cancels the model and tool calls in flight. The machine itself times the
	// grace within which their results are kept (see [Grace]).
	CancelInFlight struct{}
	// Seal asks for [Sealed] or [SealFailed]: it stores the tail up to its last event, To. Local
	// means that a local activity may store it, because the run has nothing else to do. With Report it
	// asks for [SealSlow] too.
	Seal struct {
		SealArgs
		To            int64
		Local, Report bool
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
		N       int // the number of the hold
		Verb    agent.Verb
		Grace   agent.Duration // see [agent.HoldRef]
		By      string         // who ordered an end; the order says it of an interrupt
	}
	// AwaitInFlight keeps the workflow task open for up to a second until the cancelled activities
	// return. Otherwise the run's next task could wait behind those of a whole tree that stops. With
	// Report it asks for [InFlightAwaited].
	AwaitInFlight struct{ Report bool }
	// MakeHandoff asks for [HandoffMade]. The handoff is made of what the machine knows (Known),
	// the model's summary, and the children's handoffs.
	MakeHandoff struct {
		Known       agent.Handoff
		SummaryText string
		Children    []Child
		Artifacts   []agent.Artifact // those of sub-agents: see [MakeHandoff.ArtifactsOf]
	}
	// StartChild asks for [ChildStarted], and then for [ChildEnded].
	StartChild struct {
		Session, Agent, Task, Context string
		// Files are parts with files of this run's session. The child copies their bytes.
		Files      []agent.Part
		Limits     agent.Limits
		Background bool
		ChildStart wire.ChildStart
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
	// Acknowledge answers the verb of this step; or that of an earlier step, whose id is For: a resume that
	// has waited for hooks, or an interrupt for the run's own calls. Err is its refusal: of such a resume, or
	// of a late answer, which is recorded all the same.
	Acknowledge struct {
		Ack agent.Ack
		For string
		Err *agent.Error
	}
	// TakeSignals asks for the signals that wait, and then for [SignalsTaken].
	TakeSignals struct{}
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
func (Refresh) effect()        {}
func (MakeWorkspace) effect()  {}
func (EndWorkspace) effect()   {}
func (Look) effect()           {}
func (CallModel) effect()      {}
func (CallTool) effect()       {}
func (AskFlow) effect()        {}
func (CancelCall) effect()     {}
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
func (TakeSignals) effect()    {}
