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
	// Kept happened before the checkpoint. The model knows about them.
	Kept []SideEffect `json:"kept"`
	// MayRepeat happened after the checkpoint. They are not undone. The model does not
	// know about them, so it may make these calls again.
	MayRepeat []SideEffect `json:"may_repeat"`
}

// SideEffect is a call that may have changed something outside.
type SideEffect struct {
	Run    string     `json:"run"`
	Call   string     `json:"call"`
	Tool   string     `json:"tool"`
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
