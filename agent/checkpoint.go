package agent

import (
	"encoding/json"
	"time"
)

// Checkpoint is the state of a run after one of its turns, or before its first one (turn
// 0). A new run can begin from it: see client.Client.Fork.
type Checkpoint struct {
	ID    string    `json:"checkpoint"`
	Run   string    `json:"run"` // empty for the session's beginning
	Agent string    `json:"agent,omitempty"`
	Turn  int       `json:"turn"`
	Time  time.Time `json:"time,omitzero"`
	Usage Usage     `json:"usage"`
	Cost  USD       `json:"cost_usd"`
	// Tools counts the results of the calls before the checkpoint, by tool.
	Tools []ToolCount `json:"tools,omitempty"`
	// Messages is how many messages the model sees at this point. Text is the last one
	// that it wrote.
	Messages int    `json:"messages"`
	Text     string `json:"text,omitempty"`
	// Pending are calls of the following turn that have no result. Only the last
	// checkpoint of a session has them.
	Pending []ToolCall `json:"pending,omitempty"`
	// Compacted means that the model sees a summary of earlier messages.
	Compacted bool `json:"compacted,omitempty"`
}

// Seq returns the number of the event after which the checkpoint lies; zero if the ID is
// no checkpoint's.
func (p Checkpoint) Seq() int64 { return Forked{Checkpoint: p.ID}.At() }

// RunRecord is what a session's log says about one of its runs.
type RunRecord struct {
	Run    string `json:"run"`
	Agent  string `json:"agent"`
	By     string `json:"by,omitempty"`
	Carry  Carry  `json:"carry,omitempty"`
	Status Status `json:"status"` // running until the log has the run's end
	Reason string `json:"reason,omitempty"`
	// Forked is set if the run began at a checkpoint.
	Forked *Forked `json:"forked,omitempty"`
	Turns  int     `json:"turns"`
	Usage  Usage   `json:"usage"`
	Cost   USD     `json:"cost_usd"`
	// First and Last are the numbers of the run's first and last event. First-1 is the
	// cursor before the run.
	First   int64     `json:"first"`
	Last    int64     `json:"last"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
}

// ForkPlan says which side effects a fork keeps and which it may repeat. Side effects are
// calls of tools that change something, whatever their result.
type ForkPlan struct {
	Checkpoint Checkpoint `json:"checkpoint"`
	// Kept happened before the checkpoint. The model, or a flow's function, knows about them.
	Kept []SideEffect `json:"kept"`
	// MayRepeat happened after the checkpoint, or are steps of a flow that are to be made
	// again. They are not undone. The model does not know about them, so it may make these
	// calls again.
	MayRepeat []SideEffect `json:"may_repeat"`
	// Steps are all steps of a flow that its run had asked for before the checkpoint, in that
	// order; nil for other agents.
	Steps []StepPlan `json:"steps,omitempty"`
}

// StepPlan says what a fork does about a step of a flow.
type StepPlan struct {
	// Path, Tool, Call, Run, Status and Dropped are those of the step's [StepRecord].
	Path    string     `json:"path"`
	Tool    string     `json:"tool"`
	Call    string     `json:"call"`
	Run     string     `json:"run"`
	Status  CallStatus `json:"status,omitempty"`
	Dropped bool       `json:"dropped,omitempty"`
	// Again says why the fork makes the step again if its function asks for it. Empty means
	// that the result is kept, for a step with the same path and the same arguments.
	Again AgainReason `json:"again,omitempty"`
}

// AgainReason says why a fork makes a step of a flow again.
type AgainReason string

// The values of AgainReason.
const (
	// AgainOpen means that the step has no result: it was open at the checkpoint, or was not
	// made.
	AgainOpen AgainReason = "open"
	// AgainDropped means that nobody waited for the step, and that it did not succeed.
	AgainDropped AgainReason = "dropped"
	// AgainFailed means that the step did not succeed, and that the fork is a retry.
	AgainFailed AgainReason = "failed"
	// AgainRedo means that Redo names the step, or a scope around it.
	AgainRedo AgainReason = "redo"
	// AgainApproval means that people have approved it for the run before, and that the fork
	// is not a plain retry.
	AgainApproval AgainReason = "approval"
	// AgainInput means that the flow gets another input. Code of the flow's own is
	// made again unless it says what it depends on, and another step if its arguments change.
	AgainInput AgainReason = "input"
	// AgainAgent means that another agent made the step.
	AgainAgent AgainReason = "agent"
)

// SideEffect is a call that may have changed something outside.
type SideEffect struct {
	Run    string     `json:"run"`
	Call   string     `json:"call"`
	Tool   string     `json:"tool"`
	Step   string     `json:"step,omitempty"` // see [CallUpdate.Step]
	Status CallStatus `json:"status"`
	Time   time.Time  `json:"time"`
}

// CheckpointDiff is the difference between two checkpoints of a session.
type CheckpointDiff struct {
	From Checkpoint `json:"from"`
	To   Checkpoint `json:"to"`
	// Common is how many messages both begin with. Removed are messages that only From
	// has, and Added those that only To has.
	Common  int       `json:"common"`
	Removed []Message `json:"removed"`
	Added   []Message `json:"added"`
	// State has the keys of the session's state that differ, with their values at To. A
	// key that To does not have is null.
	State map[string]json.RawMessage `json:"state,omitempty"`
}
