package agent

import (
	"encoding/json"
	"strings"
	"time"
)

// Version is the version of every type on the wire.
const Version = 1

// Status is the state of a run. The set is closed (docs/wire.md §1). A crash is no status.
type Status string

// The statuses. The last four are final.
const (
	StatusPending    Status = "pending" // started, and no worker has taken it yet
	StatusRunning    Status = "running"
	StatusSuspending Status = "suspending"
	StatusSuspended  Status = "suspended"
	StatusCompleted  Status = "completed"
	StatusFailed     Status = "failed"
	StatusCancelled  Status = "cancelled"
	StatusStopped    Status = "stopped"
)

// Ended reports whether the status is final.
func (s Status) Ended() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled || s == StatusStopped
}

// Known reports whether the status is one of these eight.
func (s Status) Known() bool {
	return s.Ended() || s == StatusPending || s == StatusRunning || s == StatusSuspending || s == StatusSuspended
}

// Reasons of an end or a status, beside the codes of failures.
const (
	ReasonDone       = "done"               // completed by a final answer
	ReasonFinished   = "finished"           // completed by the tool finish
	ReasonStopAfter  = "stop_after"         // completed by the result of a tool of stop_after
	ReasonStalled    = "stalled_done_judge" // a judge of verify accepted the work of a run that repeated a call
	ReasonWatchdog   = "watchdog"           // a daemon's interval woke it too often without any work
	ReasonPostTurn   = "post_turn_stop"     // a tool of hooks.after_turn stopped it, and gave no reason
	ReasonRequested  = "requested"          // somebody cancelled it
	ReasonStopping   = "stopping"           // only of a status: the run is being stopped, and has not ended yet
	ReasonCancelling = "cancelling"         // only of a status: the run was cancelled, and has not ended yet
	ReasonExported   = "exported"           // cancelled, because the session continues elsewhere
	ReasonTerminated = "terminated"         // somebody terminated the workflow, so the run could not end itself
	ReasonTimedOut   = "timed_out"          // the workflow's own execution timeout
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
	// Skills are names of the agent's skills that are active from the first turn on.
	Skills []string `json:"skills,omitempty"`
	// WorkingFiles are paths of files that the task is about. They decide which skills match,
	// and nothing else.
	WorkingFiles []string `json:"working_files,omitempty"`
	// Judge is asked about the run's answer after the agent's own checks, which stay as they are;
	// nil adds no check. An empty one judges by the task alone. Flows have none.
	Judge *Judge `json:"judge,omitempty"`
	// From makes the run begin at a checkpoint; nil means at the session's end. With it,
	// an input is optional.
	From *StartFrom `json:"from,omitempty"`
	// Park makes the run wait before its first turn until the conditions are met.
	Park *Conditions `json:"park,omitempty"`
	// Import makes the run continue one that was suspended in another cluster. It names a
	// signed export in the store. Only an import sets it, together with agent, answers, by
	// and meta alone.
	Import string `json:"import,omitempty"`
	// Answers decide requests of the imported run, all or none, before it does anything
	// else. They have neither tokens nor files. Only beside Import.
	Answers []AnswerTo `json:"answers,omitempty"`
	// After is the id of the session's previous run, as Temporal knew it at the start;
	// empty if it knew none. The client sets it. If it is set and the store has nothing
	// about the session, the run fails instead of beginning with an empty conversation.
	After string `json:"after,omitempty"`
	// Meta is the sender's JSON. The run keeps it, and reads only its traceparent (W3C,
	// version 00).
	Meta json.RawMessage `json:"meta,omitempty"`
}

// Input is the task of a run. One field is enough.
type Input struct {
	Text  string          `json:"text,omitempty"`
	Parts []Part          `json:"parts,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
	// Briefing is the handoff of an earlier run.
	Briefing *Handoff `json:"briefing,omitempty"`
}

// maxTask is the length of the task in listings, in characters (docs/wire.md §8).
const maxTask = 120

// Task returns the beginning of the task on one line, as listings show it.
func (in Input) Task() string {
	text := in.Text
	for _, p := range in.Parts {
		if text == "" {
			text = p.Text
		}
		if text == "" && p.File != nil {
			text = p.File.Name
		}
	}
	if text == "" {
		text = string(in.Data)
	}
	runes := []rune(strings.Join(strings.Fields(text), " "))
	// Runes, so that no character is cut.
	if len(runes) > maxTask {
		runes = append(runes[:maxTask-1], '…')
	}
	return string(runes)
}

// RunStatus is the answer to the query status (docs/wire.md §5).
type RunStatus struct {
	V       int       `json:"v"`
	Session string    `json:"session"`
	Run     string    `json:"run"`
	Agent   string    `json:"agent"`
	Status  Status    `json:"status"`
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"`
	// Turn is the number of the last turn, as in the log. Turns is how many the run itself has begun, as
	// in [Outcome]: it is less where the run was forked.
	Turn     int        `json:"turn"`
	Turns    int        `json:"turns"`
	InFlight []InFlight `json:"in_flight"`
	// Suspension says why the run waits; nil if it does not.
	Suspension *Suspension `json:"suspension,omitempty"`
	// SuspensionDenied says which suspension a hook has denied, and why; nil if none did since the
	// run was last suspended.
	SuspensionDenied *SuspensionDenied `json:"suspension_denied,omitempty"`
	// Requests are the open requests of a flow that is not suspended, because other steps of
	// it work. Those of a suspended run are in Suspension.
	Requests []Request `json:"requests,omitempty"`
	// Children counts the child runs by status.
	Children ChildCounts `json:"children"`
	// Progress is how far the model says it is; nil if it has said nothing.
	Progress *Progress `json:"progress,omitempty"`
	// Queued counts messages that the model has not received yet.
	Queued int `json:"queued"`
	// QueuedEvents counts events that wait for a turn of their own, and the most that may
	// wait; nil if the agent is no daemon.
	QueuedEvents *Used[int] `json:"queued_events,omitempty"`
	// Watch is what a daemon looks at while it is idle ([Daemon.Watch]); empty if it watches nothing.
	Watch []string `json:"watch,omitempty"`
	// Event is the event that a daemon works on, since it woke the daemon; nil for another task.
	Event *HandledEvent `json:"event,omitempty"`
	// Kept is what a run at rest keeps until it goes on, beside its Suspension; nil if that is nothing.
	Kept   *Kept             `json:"kept,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Usage and Cost count the run itself. Tree includes all runs below it, as far as
	// they have reported. Limits compare with Tree.
	Usage  Usage      `json:"usage"`
	Cost   USD        `json:"cost_usd"`
	Tree   Tally      `json:"tree,omitzero"`
	Limits LimitsUsed `json:"limits"`
	// Granted is what the parent has granted, less what was returned. Remaining is what
	// may still be used. Both are nil if there is no limit.
	Granted   *Budget `json:"granted,omitempty"`
	Remaining *Budget `json:"remaining,omitempty"`
	// Execution is what tokens are bound to. It is the run's id; after a reset of the
	// workflow, the id of the execution that the last reset began.
	Execution string `json:"execution,omitempty"`
	// Build is the version of the worker that answers.
	Build string `json:"build"`
	Seq   int64  `json:"seq"`
	// Refused are the last 8 signals that were refused. A signal's sender gets no answer.
	Refused []RefusedVerb `json:"refused,omitempty"`
	// StoreError is set while the store refuses the run's log. The run can't be suspended
	// or end until a retry succeeds.
	StoreError *Error `json:"store_error,omitempty"`
}

// OpenRequests returns the requests that the run waits for, whether it is suspended or not.
func (s RunStatus) OpenRequests() []Request {
	if s.Suspension != nil {
		return s.Suspension.Requests
	}
	return s.Requests
}

// ChildCounts counts runs by status.
type ChildCounts struct {
	Running   int `json:"running"`
	Suspended int `json:"suspended"`
	Ended     int `json:"ended"`
}

// InFlight is one thing that a run is doing.
type InFlight struct {
	Kind InFlightKind `json:"kind"`
	Call string       `json:"call,omitempty"`
	Name string       `json:"name"` // the model, the tool, or the sub-agent for which the run's end waits
	// Step is the path of a flow's step; empty outside of flows.
	Step  string    `json:"step,omitempty"`
	Since time.Time `json:"since"`
	// Delay is set while the run waits to call a model, because its provider asked for
	// that.
	Delay *Delay `json:"delay,omitempty"`
}

// InFlightKind is what a run can be doing.
type InFlightKind string

// The kinds of things in flight.
const (
	InFlightModel InFlightKind = "model"
	InFlightTool  InFlightKind = "tool"
	InFlightStore InFlightKind = "store" // its transcript is being stored
	InFlightChild InFlightKind = "child" // a sub-agent's run
	InFlightFlow  InFlightKind = "flow"  // a flow's function is asked for its next steps
	InFlightWait  InFlightKind = "wait"  // a flow's step waits for an event or a time
)

// LimitsUsed says how much of each limit is used; limits that are not set are absent.
type LimitsUsed struct {
	Turns     *Used[int]      `json:"turns,omitempty"`
	OwnTurns  *Used[int]      `json:"own_turns,omitempty"`
	Tokens    *Used[int64]    `json:"tokens,omitempty"`
	CostUSD   *Used[USD]      `json:"cost_usd,omitempty"`
	WallClock *Used[Duration] `json:"wall_clock,omitempty"`
	Agents    *Used[int]      `json:"agents,omitempty"`
}

// Used is a limit and how much of it is used.
type Used[T any] struct {
	Used T `json:"used"`
	Max  T `json:"max"`
}

// Memo is the only field of a run's memo. It holds enough that one listing of many runs
// shows all their open requests (docs/wire.md §8).
type Memo struct {
	V      int       `json:"v"`
	Run    string    `json:"run,omitempty"`
	Task   string    `json:"task,omitempty"` // the first 120 characters
	Status Status    `json:"status"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
	Turn   int       `json:"turn"`
	Turns  int       `json:"turns,omitempty"` // see [RunStatus.Turn]
	Cost   USD       `json:"cost_usd"`
	// Tree is what the run has used with all runs below it. Granted and Remaining are as
	// in [Node]. All three are from the time when the memo was written.
	Tree      Tally             `json:"tree,omitzero"`
	Granted   *Budget           `json:"granted,omitempty"`
	Remaining *Budget           `json:"remaining,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Progress is the first 120 characters of how far the model says it is.
	Progress string `json:"progress,omitempty"`
	// Workspace is [Node.Workspace].
	Workspace WorkspaceResult `json:"workspace,omitempty"`
	// Retention is [Definition.Retention], if the run has no parent.
	Retention Duration `json:"retention,omitempty"`
	// Stateless is [Definition.Stateless].
	Stateless bool `json:"stateless,omitempty"`
	// Suspension and Requests are set if the run waits for somebody.
	Suspension string        `json:"suspension,omitempty"`
	Requests   []MemoRequest `json:"requests,omitempty"`
}

// MemoRequest is an open request as listings show it, without the call's arguments.
type MemoRequest struct {
	ID        string      `json:"id"`
	Type      RequestType `json:"type"`
	Text      string      `json:"text"` // the first 200 characters
	Tool      string      `json:"tool,omitempty"`
	Step      string      `json:"step,omitempty"` // see [Request.Step]
	Choices   []string    `json:"choices,omitempty"`
	Digest    string      `json:"digest,omitempty"`
	Approvers []string    `json:"approvers,omitempty"`
	Opened    time.Time   `json:"opened"`
	Deadline  time.Time   `json:"deadline,omitzero"`
	// Default is the decision at the deadline, its first 100 characters; see [Request.Default].
	// If the agent redacts, a text is "…".
	Default string `json:"default,omitempty"`
	// Reminded means that the request's remind time has passed.
	Reminded bool `json:"reminded,omitempty"`
}

// MemoKey is the name of the memo's field.
const MemoKey = "fermata"
