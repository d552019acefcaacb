package agent

import (
	"encoding/json"
	"time"
)

// Checkpoint is a checkpoint as readers see it: a run after one of its turns, or
// before its first (turn 0). A run can be begun anew from it.
type Checkpoint struct {
	ID    string    `json:"checkpoint"`
	Run   string    `json:"run"` // empty for the session's beginning
	Agent string    `json:"agent,omitempty"`
	Turn  int       `json:"turn"`
	Time  time.Time `json:"time,omitzero"`
	Usage Usage     `json:"usage"`
	Cost  USD       `json:"cost_usd"`
	// Tools counts what became of the calls before it.
	Tools []ToolCount `json:"tools,omitempty"`
	// Messages is how many messages the model knows there, and Text the last that
	// it said.
	Messages int    `json:"messages"`
	Text     string `json:"text,omitempty"`
	// Pending are the calls of the turn after it that have no result; set for the
	// last checkpoint of a session alone.
	Pending []ToolCall `json:"pending,omitempty"`
	// Compacted means that the model knows a summary of what came before.
	Compacted bool `json:"compacted,omitempty"`
}

// Seq is the number of the event behind which the point lies.
func (p Checkpoint) Seq() int64 { return Forked{Checkpoint: p.ID}.At() }

// RunRecord is a run of a session, as the session's log tells of it.
type RunRecord struct {
	Run    string `json:"run"`
	Agent  string `json:"agent"`
	By     string `json:"by,omitempty"`
	Carry  Carry  `json:"carry,omitempty"`
	Status Status `json:"status"` // running until the log tells of its end
	Reason string `json:"reason,omitempty"`
	// Forked is set where the run began behind a checkpoint.
	Forked *Forked `json:"forked,omitempty"`
	Turns  int     `json:"turns"`
	Usage  Usage   `json:"usage"`
	Cost   USD     `json:"cost_usd"`
	// First and Last are its events, and so a cursor before it is First-1.
	First   int64     `json:"first"`
	Last    int64     `json:"last"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
}

// ForkPlan says what beginning anew from a point means for what was done: calls of
// tools that change something, whatever came of them.
type ForkPlan struct {
	Checkpoint Checkpoint `json:"checkpoint"`
	// Kept lie before the point: the model knows of them.
	Kept []SideEffect `json:"kept"`
	// MayRepeat came after the point. They stay done, the model does not know of them,
	// and may do them again.
	MayRepeat []SideEffect `json:"may_repeat"`
}

// SideEffect is a call that may have changed something.
type SideEffect struct {
	Run    string     `json:"run"`
	Call   string     `json:"call"`
	Tool   string     `json:"tool"`
	Status CallStatus `json:"status"`
	Time   time.Time  `json:"time"`
}

// CheckpointDiff is what lies between two points of a session.
type CheckpointDiff struct {
	From Checkpoint `json:"from"`
	To   Checkpoint `json:"to"`
	// Common is how many messages both begin with; Gone are those that only From
	// knows, Came those that only To knows.
	Common  int       `json:"common"`
	Removed []Message `json:"removed"`
	Added   []Message `json:"added"`
	// State are the keys of the session's state that differ, as they are at To; a
	// key that To does not have is null.
	State map[string]json.RawMessage `json:"state,omitempty"`
}
