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
	// Summary asks for a summary in place of a turn, without tools.
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

// modelStep asks the model for what is set in a step, up to the last event.
func (s *step) modelStep(m ModelStep) {
	m.Caller, m.AfterToolResult = s.caller(), len(s.Calls.Counts) > 0
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
	s.do(CallTool{Local: tool.Local && !c.Edited && !regular, ToolStep: ToolStep{
		Caller: s.caller(), Agent: s.agent(), Call: c.ID, Of: c.Of, Tool: c.Tool, Arguments: c.Arguments, Timeout: timeout,
		Attempts: max(1, tool.Attempts), Edited: c.Edited, Approver: c.Approver, Answers: c.Answers,
	}})
}
