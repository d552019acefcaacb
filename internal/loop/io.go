package loop

import (
	"encoding/json"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/match"
)

// Moment is what an input finds.
type Moment struct {
	At time.Time // the workflow's time
	// Revision is the one that the execution has pinned. The zero value is for tests of
	// what no revision changes.
	Revision int
	// Full means that the engine asks for a new execution, the history being long, and
	// NearHistoryLimit that the server will soon end the run for that.
	Full             bool
	NearHistoryLimit bool
	// Task tells one workflow task of the execution from the others; zero if nobody counts.
	Task int
	// Looks are how much may still be compared with schemas in this task. What is compared
	// is taken from it, also if the input is refused. Nil is a budget for this input alone.
	Looks *match.Budget
	// First means that this is the execution's first workflow task: until it is taken, the
	// server may have it done again from the run's beginning.
	First bool
}

// Input is something that happened.
type Input interface{ input() }

// The inputs.
type (
	// Begin is the run's first. Err says why what was asked for can't be meant.
	Begin struct {
		Session, Run string
		Start        agent.Start
		// Brief is the text of the start's briefing.
		Brief string
		// Birth is what the run above says of this one; nil for a root.
		Birth *agent.Birth
		Err   *agent.Error
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
		Fence   agent.Fence
		Numbers agent.Numbers
		Posts   []agent.Post
		// Inbox is what the session's runs before this one have left.
		Inbox agent.Inbox
		// Behind are executions of runs before this one that were ended from outside,
		// the latest first: their last events may not be stored.
		Behind []string
		// Lost says why the last events of a run before this one can't be looked for.
		Lost string
		// State is the version of the session's state.
		State int
		// Imported is the export that the session came with.
		Imported string
		// Sources have tools that must be listed.
		Sources []string
		Err     *agent.Error
	}
	// Located brings the point in the session's log where the run begins, or why
	// there is none (Err).
	Located struct {
		Head    string
		Seq     int64
		Version int64
		Chain   int64 // as [Sealed] has it
		Numbers agent.Numbers
		Posts   []agent.Post
		Inbox   agent.Inbox
		// Forked names the point where it is not the log's end; Turn and Tools are
		// the counters there.
		Forked *agent.Forked
		Turn   int
		Tools  []agent.ToolCount
		// Migrated is the session's state where it had another version.
		Migrated *agent.Migrated
		// Recovered is the run whose last events were brought into the log; Lost says
		// why they could not be.
		Recovered, Lost string
		Err             *agent.Error
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
		Left []agent.Relisted
		Err  *agent.Error
	}
	// Replied is the model's answer to the call of the event Ask.
	Replied struct {
		Ask   int64
		Reply agent.Reply
	}
	// ModelFailed is a model call that no further attempt will mend.
	ModelFailed struct {
		Ask int64
		Err *agent.Error
	}
	// Delayed tells that the model call of the event Ask is made again at a later time, and
	// what became of its last attempt.
	Delayed struct {
		Ask   int64
		Until time.Time
		Err   *agent.Error
	}
	// Returned is what became of a tool call. Hold is set where the step met a hold;
	// a call that it did not begin for that is skipped.
	Returned struct {
		Result agent.ToolResult
		// Own means that the result is in the runtime's words: the step came to none.
		Own  bool
		Hold *agent.Heard
		// Set are keys of the session's state that the call has set.
		Set map[string]json.RawMessage
		// Ask is what the tool asks a person, instead of a result.
		Ask *agent.ToolQuestion
		// Relisted is set where the tool's source has other tools now.
		Relisted *agent.Relisted
	}
	// Slow is a local call that took longer than local ones may.
	Slow struct{ Call string }
	// Sealed tells that the log is stored up to an event, under a digest, and that
	// the session's head has a version.
	Sealed struct {
		Head    string
		Version int64
		Seq     int64
		// Chain is that of the fence that was stored; zero for the one that was decided.
		Chain int64
		// Kept are the events that waited when it was decided: the store has them.
		Kept []agent.Kept
	}
	// SealFailed tells that it could not be; where the error is retryable, a later
	// attempt may succeed.
	SealFailed struct{ Err *agent.Error }
	// Tick tells that the time of the last [Wake] has come.
	Tick struct{}
	// Cancel is Temporal's own cancellation of the workflow.
	Cancel struct{}
	// Cut ends a run of which nothing is left but its state: somebody has terminated
	// its workflow, or the workflow's own time was up (Err).
	Cut struct {
		Reason string
		Err    *agent.Error
	}
	// Continued is the first input of an execution that goes on with a carried state.
	Continued struct{}
	// Said is a verb. Its answer is an [Acknowledge].
	Said struct {
		Command agent.Command
		// ID makes a second arrival harmless; empty where it has none.
		ID string
		// Vouched tells that the worker has held it to its policy before it was recorded,
		// as it does with updates. What is not vouched for proves nothing.
		Vouched bool
		// Proved are who the tokens of the command prove to have said it.
		Proved []Proof
	}
	// Refused is a verb that was refused and could not be told.
	Refused struct {
		Verb string
		Err  *agent.Error
	}
	// ChildStarted tells that a child has begun, as a run, or why it could not (Err).
	ChildStarted struct {
		Session, Run string
		Err          *agent.Error
	}
	// ChildEnded is how a child ended.
	ChildEnded struct {
		Session string
		Outcome *agent.Outcome
	}
	// Reported is what a child says of itself, Ordered what the run above wants.
	Reported struct{ Report agent.ChildReport }
	Ordered  struct{ Order agent.HoldOrder }
	// Granted is what the run above says of what this one may use.
	Granted struct{ Order agent.GrantOrder }
	// Leased reports whether the parent is gone.
	Leased struct{ Gone bool }
	// Folded is the handoff that a [Fold] asked for.
	Folded struct{ Handoff agent.Handoff }
)

// Proof is what a token proves: who decides a request or, where that is empty, says the
// whole verb. Nonce tells one token from another until it expires.
type Proof struct {
	Request, Principal, Nonce string
	Expires                   time.Time
}

func (Begin) input()        {}
func (Opened) input()       {}
func (Located) input()      {}
func (Imported) input()     {}
func (Listed) input()       {}
func (Replied) input()      {}
func (ModelFailed) input()  {}
func (Delayed) input()      {}
func (Returned) input()     {}
func (Slow) input()         {}
func (Sealed) input()       {}
func (SealFailed) input()   {}
func (Tick) input()         {}
func (Cancel) input()       {}
func (Cut) input()          {}
func (Continued) input()    {}
func (Said) input()         {}
func (Refused) input()      {}
func (Folded) input()       {}
func (ChildStarted) input() {}
func (ChildEnded) input()   {}
func (Reported) input()     {}
func (Ordered) input()      {}
func (Granted) input()      {}
func (Leased) input()       {}

// Effect is something to be done. What comes of it is an input.
type Effect interface{ effect() }

// The effects.
type (
	// Open asks for [Opened].
	Open struct{ OpenStep }
	// Locate asks for [Located].
	Locate struct{ LocateStep }
	// Import asks for [Imported].
	Import struct{ ImportStep }
	// List asks for [Listed].
	List struct{ ListStep }
	// CallModel asks for [Replied] or [ModelFailed]. The conversation is the log
	// up to the event Seq.
	CallModel struct {
		ModelStep
		Seq int64
	}
	// CallTool asks for [Returned]. Local calls may be made within the workflow's task.
	CallTool struct {
		ToolStep
		Local bool
	}
	// Abandon gives up the model and tool calls in flight. What comes back within
	// the grace is taken.
	Abandon struct{ Grace agent.Duration }
	// Seal asks for [Sealed] or [SealFailed]: store the tail up to the event To,
	// which is its last. Within tells that this may be done in the workflow's task: the run has
	// nothing else to do.
	Seal struct {
		SealStep
		To     int64
		Within bool
	}
	// Wake asks for a [Tick] at a time, instead of the one that was asked for
	// before; a zero time asks for none.
	Wake struct {
		At  time.Time
		Why string // for who looks at the timer
	}
	// Broadcast gives up at once what this process, and the others, have in flight
	// of a session and of all below it. It may be lost.
	Broadcast struct {
		Session string
		N       int
		Verb    agent.Verb
		Grace   agent.Duration
	}
	// Gather keeps the run's turn at the server for a moment, until what it has in
	// flight is back: behind a whole tree that stops at once it would wait long for
	// its next.
	Gather struct{}
	// Fold asks for [Folded]: the handoff of what is known for sure and of what
	// the model said.
	Fold struct {
		Known    agent.Handoff
		Said     string
		Children []Child
	}
	// StartChild asks for [ChildStarted], and then for [ChildEnded].
	StartChild struct {
		Session, Agent, Task, Context string
		Limits                        agent.Limits
		Background                    bool
		Birth                         agent.Birth
	}
	// TellChild and TellParent pass on to a sub-agent, or to the parent.
	TellChild struct {
		Session string
		Order   agent.HoldOrder
	}
	TellParent struct {
		Session string
		Report  agent.ChildReport
	}
	// GrantChild tells a run below what it may use.
	GrantChild struct {
		Session string
		Order   agent.GrantOrder
	}
	// PassOn says a verb to a run below.
	PassOn struct {
		Session string
		Command agent.Command
	}
	// LookAfter asks for [ChildEnded] where a child is gone. Ending means that it has said so,
	// and is waited for.
	LookAfter struct {
		Session, Run string
		Ending       bool
	}
	// Lease asks for [Leased].
	Lease struct{ Parent agent.Parent }
	// Acknowledge answers the verb that was just said.
	Acknowledge struct{ Ack agent.Ack }
	// Publish shows the run's status where listings look.
	Publish struct{}
	// CarryOver ends this execution; the next one gets the state.
	CarryOver struct{}
	// Complete ends the run.
	Complete struct{}
)

func (Open) effect()        {}
func (Locate) effect()      {}
func (Import) effect()      {}
func (List) effect()        {}
func (CallModel) effect()   {}
func (CallTool) effect()    {}
func (Abandon) effect()     {}
func (Seal) effect()        {}
func (Wake) effect()        {}
func (Broadcast) effect()   {}
func (Gather) effect()      {}
func (Fold) effect()        {}
func (StartChild) effect()  {}
func (TellChild) effect()   {}
func (TellParent) effect()  {}
func (GrantChild) effect()  {}
func (PassOn) effect()      {}
func (LookAfter) effect()   {}
func (Lease) effect()       {}
func (Acknowledge) effect() {}
func (Publish) effect()     {}
func (CarryOver) effect()   {}
func (Complete) effect()    {}
