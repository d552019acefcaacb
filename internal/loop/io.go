package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Moment is what an input finds: the workflow's time, and whether the engine
// asks for a new execution, its history being long.
type Moment struct {
	At   time.Time
	Full bool
}

// Input is something that happened.
type Input interface{ input() }

// The inputs.
type (
	// Begin is the run's first. Err says why what was asked for can't be meant.
	Begin struct {
		Session, Run string
		Start        agent.Start
		Err          *agent.Error
	}
	// Opened brings what the run is made of, or why it can't be (Err).
	Opened struct {
		Spec *agent.Spec
		// Head, Seq and Version say where the session's log ends in the store.
		Head    string
		Seq     int64
		Version int64
		// Sources have tools that must be listed.
		Sources []string
		Err     *agent.Error
	}
	// Listed brings the tools of the sources, or why they can't be had (Err).
	Listed struct {
		Tools []agent.ToolSpec
		Err   *agent.Error
	}
	// Replied is the model's answer.
	Replied struct{ Reply agent.Reply }
	// ModelFailed is a model call that no further attempt will mend.
	ModelFailed struct{ Err *agent.Error }
	// Returned is what became of a tool call.
	Returned struct{ Result agent.ToolResult }
	// Sealed tells that the log is stored up to an event, under a digest, and that
	// the session's head has a version.
	Sealed struct {
		Head    string
		Version int64
		Seq     int64
	}
	// SealFailed tells that it can't be, and that no waiting helps.
	SealFailed struct{ Err *agent.Error }
	// TimeUp tells that the deadline has passed.
	TimeUp struct{}
	// Cancel is somebody's wish to end the run at once.
	Cancel struct{}
	// Continued is the first input of an execution that goes on with a carried state.
	Continued struct{}
)

func (Begin) input()       {}
func (Opened) input()      {}
func (Listed) input()      {}
func (Replied) input()     {}
func (ModelFailed) input() {}
func (Returned) input()    {}
func (Sealed) input()      {}
func (SealFailed) input()  {}
func (TimeUp) input()      {}
func (Cancel) input()      {}
func (Continued) input()   {}

// Effect is something to be done. What comes of it is an input.
type Effect interface{ effect() }

// The effects.
type (
	// Open asks for [Opened].
	Open struct{ Agent string }
	// List asks for [Listed].
	List struct{ Sources []string }
	// CallModel asks for [Replied] or [ModelFailed]. The conversation is the log
	// up to the event Seq.
	CallModel struct {
		Turn int
		Seq  int64
		// AfterToolResult tells that tools have run before.
		AfterToolResult bool
	}
	// CallTool asks for [Returned].
	CallTool struct {
		Turn int
		Call agent.ToolCall
		Tool agent.ToolSpec
	}
	// Abandon gives up the model and tool calls in flight: no input of theirs
	// will be taken any more.
	Abandon struct{}
	// Seal asks for [Sealed] or [SealFailed]: store the tail up to the event To,
	// which is its last. Final tells that the run ends with it.
	Seal struct {
		To    int64
		Final bool
	}
	// Arm asks for [TimeUp] at a time; Disarm takes it back.
	Arm    struct{ At time.Time }
	Disarm struct{}
	// Publish shows the run's status where listings look.
	Publish struct{}
	// CarryOver ends this execution; the next one gets the state.
	CarryOver struct{}
	// Complete ends the run.
	Complete struct{}
)

func (Open) effect()      {}
func (List) effect()      {}
func (CallModel) effect() {}
func (CallTool) effect()  {}
func (Abandon) effect()   {}
func (Seal) effect()      {}
func (Arm) effect()       {}
func (Disarm) effect()    {}
func (Publish) effect()   {}
func (CarryOver) effect() {}
func (Complete) effect()  {}
