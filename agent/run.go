package agent

import (
	"encoding/json"
	"strings"
	"time"
)

// Version is the version of everything on the wire.
const Version = 1

// Status is where a run stands; the set is closed (docs/wire.md §1). A crash is not a status.
type Status string

// The statuses. The last four are ends: nothing leaves them.
const (
	StatusPending    Status = "pending" // started, and no worker has looked at it yet
	StatusRunning    Status = "running"
	StatusSuspending Status = "suspending"
	StatusSuspended  Status = "suspended"
	StatusCompleted  Status = "completed"
	StatusFailed     Status = "failed"
	StatusCancelled  Status = "cancelled"
	StatusStopped    Status = "stopped"
)

// Ended reports whether the status is an end.
func (s Status) Ended() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled || s == StatusStopped
}

// Known reports whether the status is one of the eight.
func (s Status) Known() bool {
	return s.Ended() || s == StatusPending || s == StatusRunning || s == StatusSuspending || s == StatusSuspended
}

// Reasons of ends that are not a failure's code.
const (
	ReasonDone       = "done"       // completed by a final answer
	ReasonFinished   = "finished"   // completed by the tool finish
	ReasonWatchdog   = "watchdog"   // a daemon was woken by its interval too often without doing anything
	ReasonRequested  = "requested"  // cancelled by somebody
	ReasonStopping   = "stopping"   // of a status: a stop was taken, and the end is to come
	ReasonExported   = "exported"   // cancelled, since it goes on elsewhere
	ReasonTerminated = "terminated" // somebody terminated the workflow: no wrap-up ran
	ReasonTimedOut   = "timed_out"  // the workflow's own execution timeout
)

// Start is the input of the workflow fermata.run (docs/wire.md §3).
type Start struct {
	V      int               `json:"v,omitempty"`
	Agent  string            `json:"agent"`
	Input  Input             `json:"input"`
	By     string            `json:"by,omitempty"`
	Limits Limits            `json:"limits,omitzero"`
	Labels map[string]string `json:"labels,omitempty"`
	Carry  Carry             `json:"carry,omitempty"`
	ID     string            `json:"id,omitempty"`
	// From makes the run begin behind a checkpoint; nil means at the session's end.
	// An input is not needed beside it.
	From *StartFrom `json:"from,omitempty"`
	// Park makes the run wait before its first turn, until the conditions are met.
	Park *Conditions `json:"park,omitempty"`
	// Import makes the run go on with one that was suspended elsewhere: the name of
	// a signed export in the store. Only an import sets it, with no other field than
	// agent, by and meta.
	Import string `json:"import,omitempty"`
	// After is the id of the session's run before, as Temporal knew it at the start; empty
	// if it knew none. The client sets it: a store that has nothing of the session is an
	// error then, and no new beginning.
	After string `json:"after,omitempty"`
	// Meta is the sender's own. Only its traceparent (W3C, version 00) is read.
	Meta json.RawMessage `json:"meta,omitempty"`
}

// Input is what a run is asked to do. One of its fields is enough.
type Input struct {
	Text  string          `json:"text,omitempty"`
	Parts []Part          `json:"parts,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
	// Briefing is what an earlier run handed over.
	Briefing *Handoff `json:"briefing,omitempty"`
}

// maxTask bounds the task that a listing shows, in characters (docs/wire.md §8).
const maxTask = 120

// Task is the beginning of what is asked, on one line, as listings show it.
func (in Input) Task() string {
	text := in.Text
	for _, p := range in.Parts {
		if text == "" {
			text = p.Text
		}
	}
	if text == "" {
		text = string(in.Data)
	}
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > maxTask {
		runes = append(runes[:maxTask-1], '…')
	}
	return string(runes)
}

// Carry says what a new run of a session keeps of the runs before it.
type Carry string

// The ways to carry over. The zero value means inherit.
const (
	CarryInherit Carry = "inherit" // the whole conversation
	CarryReset   Carry = "reset"   // nothing but the session's numbers
	CarryCompact Carry = "compact" // a summary, which the model makes first
)

// Outcome is how a run ended: the workflow's result, or the first detail of its
// failure (docs/wire.md §6).
type Outcome struct {
	V       int    `json:"v"`
	Type    string `json:"type"` // always "outcome"
	Session string `json:"session"`
	Run     string `json:"run"`
	Agent   string `json:"agent"`
	Status  Status `json:"status"`
	Reason  string `json:"reason"`
	// Text is the last answer of the model.
	Text string `json:"text,omitempty"`
	// Output is the answer as JSON, where the agent has a schema for it.
	Output json.RawMessage `json:"output,omitempty"`
	// Handoff is set where the run was stopped.
	Handoff *Handoff `json:"handoff,omitempty"`
	Error   *Error   `json:"error,omitempty"`
	// Suspension is set where a reader is told of a rest and not of an end.
	Suspension *Suspension `json:"suspension,omitempty"`

	// Turns, Usage and Cost are the run's own, Tree what it has used with all below it.
	Turns int   `json:"turns"`
	Usage Usage `json:"usage"`
	Cost  USD   `json:"cost_usd"`
	Tree  Tally `json:"tree,omitzero"`
	// Tools tells what became of the calls, by tool, in the order of first use.
	Tools   []ToolCount `json:"tools,omitempty"`
	Started time.Time   `json:"started"`
	Ended   time.Time   `json:"ended,omitzero"`
	// SuspendedFor is the time that the run spent suspended.
	SuspendedFor Duration `json:"suspended_for,omitempty"`
	Seq          int64    `json:"seq"`
}

// ToolCount counts what became of a tool's calls.
type ToolCount struct {
	Tool     string `json:"tool"`
	Calls    int    `json:"calls"`
	OK       int    `json:"ok"`
	Failed   int    `json:"failed"`
	Rejected int    `json:"rejected"`
	Unknown  int    `json:"unknown"`
	Skipped  int    `json:"skipped"`
}

// OK reports whether the task was really finished.
func (o Outcome) OK() bool { return o.Status == StatusCompleted }

// Decode writes the output of a completed run into a value, as encoding/json does. It
// returns [Outcome.Err] for a run that was not completed, and [CodeIncompatible] for an
// output that does not fit the value, or for none: the agent has no [Definition.Output].
func (o *Outcome) Decode(into any) error {
	if err := o.Err(); err != nil {
		return err
	}
	if err := json.Unmarshal(o.Output, into); err != nil {
		return Errorf(CodeIncompatible, "the output of the run is no %T: %w", into, err)
	}
	return nil
}

// Err is why the run has no answer: nil for one that was completed or stopped.
func (o Outcome) Err() error {
	switch {
	case o.Error != nil:
		return o.Error
	case o.Status == StatusCancelled:
		return Errorf(CodeClosed, "the run was cancelled (%s)", o.Reason)
	}
	return nil
}

// RunStatus is the answer to the query status (docs/wire.md §5).
type RunStatus struct {
	V        int        `json:"v"`
	Session  string     `json:"session"`
	Run      string     `json:"run"`
	Agent    string     `json:"agent"`
	Status   Status     `json:"status"`
	Reason   string     `json:"reason"`
	Since    time.Time  `json:"since"`
	Turn     int        `json:"turn"`
	InFlight []InFlight `json:"in_flight"`
	// Suspension is why the run waits; absent if it does not.
	Suspension *Suspension `json:"suspension,omitempty"`
	// Children counts the runs below this one by how they stand.
	Children ChildCounts `json:"children"`
	// Queued counts messages that have not reached the model yet.
	Queued int `json:"queued"`
	// QueuedEvents counts events that wait for turns of their own, and how many may; absent
	// where the agent is no daemon.
	QueuedEvents *Used[int]        `json:"queued_events,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	// Usage and Cost are the run's own, Tree is what it has used with all below it, as far
	// as that was heard. Limits count the tree.
	Usage  Usage      `json:"usage"`
	Cost   USD        `json:"cost_usd"`
	Tree   Tally      `json:"tree,omitzero"`
	Limits LimitsUsed `json:"limits"`
	// Granted is what the parent has granted, less what was given back; Remaining is what
	// may still be used. Both are nil where nothing is bounded.
	Granted   *Budget `json:"granted,omitempty"`
	Remaining *Budget `json:"remaining,omitempty"`
	// Execution is what tokens are bound to: the run's id or, where its workflow was reset,
	// that of the execution which the last reset began.
	Execution string `json:"execution,omitempty"`
	// Build is the version of the worker that answers.
	Build string `json:"build"`
	Seq   int64  `json:"seq"`
	// Refused are the last 8 refused signals: their senders got no answer.
	Refused []RefusedVerb `json:"refused,omitempty"`
	// StoreError is why the log can't be stored now. Until it is, the run is neither
	// suspended nor ended. The run tries again.
	StoreError *Error `json:"store_error,omitempty"`
}

// ChildCounts counts runs by how they stand.
type ChildCounts struct {
	Running   int `json:"running"`
	Suspended int `json:"suspended"`
	Ended     int `json:"ended"`
}

// InFlight is one thing that a run is at.
type InFlight struct {
	Kind  InFlightKind `json:"kind"`
	Call  string       `json:"call,omitempty"`
	Name  string       `json:"name"` // the model or the tool
	Since time.Time    `json:"since"`
	// Delay is set while a model is not asked, since its provider asked to wait.
	Delay *Delay `json:"delay,omitempty"`
}

// InFlightKind is what a run can be at.
type InFlightKind string

// The kinds of things that a run does.
const (
	InFlightModel InFlightKind = "model"
	InFlightTool  InFlightKind = "tool"
	InFlightStore InFlightKind = "store" // its transcript is being stored
	InFlightChild InFlightKind = "child" // an agent that it gave work to
)

// LimitsUsed says how much of each limit is spent; limits that are not set are absent.
type LimitsUsed struct {
	Turns     *Used[int]      `json:"turns,omitempty"`
	OwnTurns  *Used[int]      `json:"own_turns,omitempty"`
	Tokens    *Used[int64]    `json:"tokens,omitempty"`
	CostUSD   *Used[USD]      `json:"cost_usd,omitempty"`
	WallClock *Used[Duration] `json:"wall_clock,omitempty"`
	Agents    *Used[int]      `json:"agents,omitempty"`
}

// Used is a limit and what is spent of it.
type Used[T any] struct {
	Used T `json:"used"`
	Max  T `json:"max"`
}

// Memo is the one field of a run's memo: a listing of many runs is a whole inbox (docs/wire.md §8).
type Memo struct {
	V      int       `json:"v"`
	Run    string    `json:"run,omitempty"`
	Task   string    `json:"task,omitempty"` // the first 120 characters
	Status Status    `json:"status"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
	Turn   int       `json:"turn"`
	Cost   USD       `json:"cost_usd"`
	// Tree is what the run has used with all below it, Granted and Remaining are as in [Node];
	// all three as they were when the memo was written.
	Tree      Tally             `json:"tree,omitzero"`
	Granted   *Budget           `json:"granted,omitempty"`
	Remaining *Budget           `json:"remaining,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Suspension and Requests are set where the run waits for somebody.
	Suspension string        `json:"suspension,omitempty"`
	Requests   []MemoRequest `json:"requests,omitempty"`
}

// MemoRequest is an open request as listings show it: the arguments are not in it.
type MemoRequest struct {
	ID        string      `json:"id"`
	Type      RequestType `json:"type"`
	Text      string      `json:"text"` // the first 200 characters
	Tool      string      `json:"tool,omitempty"`
	Choices   []string    `json:"choices,omitempty"`
	Digest    string      `json:"digest,omitempty"`
	Approvers []string    `json:"approvers,omitempty"`
	Opened    time.Time   `json:"opened"`
	Deadline  time.Time   `json:"deadline,omitzero"`
	// Reminded means that the request has waited for longer than it should.
	Reminded bool `json:"reminded,omitempty"`
}

// MemoKey is the memo's field.
const MemoKey = "fermata"
