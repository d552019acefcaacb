package agent

import (
	"encoding/json"
	"time"
)

// Suspension says why a run waits, and for what. A run has at most one open suspension.
type Suspension struct {
	ID        string         `json:"id"` // "s-14", counted over the session's life
	Kind      SuspensionKind `json:"kind"`
	Initiator Initiator      `json:"initiator"`
	// Cause gives more detail than Kind. The set is open.
	Cause  string `json:"cause,omitempty"`
	Reason string `json:"reason,omitempty"`
	Turn   int    `json:"turn"`
	// Checkpoint is the run's newest checkpoint, from which a fork or a retry can begin; empty before
	// the run's first turn.
	Checkpoint string    `json:"checkpoint,omitempty"`
	Since      time.Time `json:"since"`
	// Expires is the earliest deadline of the requests and conditions; zero if there is
	// none.
	Expires time.Time `json:"expires,omitzero"`
	// ResumeBy is until when a person may resume the run; zero if there is no limit (see
	// [Definition.ResumeWithin]). Its requests can be answered for as long, counted from
	// Since.
	ResumeBy time.Time `json:"resume_by,omitzero"`
	// Owner is who can let the run continue; empty if the one who reports the suspension
	// does not know.
	Owner      Owner       `json:"owner,omitempty"`
	Requests   []Request   `json:"requests,omitempty"`
	Conditions *Conditions `json:"conditions,omitempty"`
	Holds      []Hold      `json:"holds,omitempty"`
	// Waits are what the steps of a flow wait for, beside Requests.
	Waits []StepWait `json:"waits,omitempty"`
	// OwnerFailed says why the owner does not let the run continue; nil if nothing says so. Only a
	// sub-agent in the foreground has it.
	OwnerFailed *OwnerFailure `json:"owner_failed,omitempty"`
}

// OwnerFailure says why the owner of a suspension does not let the run continue. No time or deadline
// ends such a suspension.
type OwnerFailure struct {
	Suspension string `json:"suspension"`
	Owner      Owner  `json:"owner"`
	// Code is [CodeDenied] if a hook refused a person's resume, or failed, and [CodeExpired] if
	// resume_within is over.
	Code   Code   `json:"code"`
	Reason string `json:"reason,omitempty"` // empty in the summary of a redacted run
}

// SuspensionKind says what a run waits for. The set is closed.
type SuspensionKind string

// The kinds of suspensions.
const (
	SuspensionInputRequired    SuspensionKind = "input_required" // a question, an approval, a limit that asks, a client tool
	SuspensionHeld             SuspensionKind = "held"           // a pause or an interrupt holds it
	SuspensionParked           SuspensionKind = "parked"         // for a time, an event, or a resume
	SuspensionAwaitingChildren SuspensionKind = "awaiting_children"
	SuspensionAwaitingBudget   SuspensionKind = "awaiting_budget" // for its parent's grant
)

// Owner is who can let a suspended run continue: one at a time. The set is closed.
type Owner string

// The owners.
const (
	OwnerOperator Owner = "operator" // who answers or resumes
	OwnerParent   Owner = "parent"   // the parent run, which holds it
	OwnerRuntime  Owner = "runtime"  // a time, an event, or the end of a child run
)

// Initiator is who suspended or resumed a run. The set is closed.
type Initiator string

// The initiators.
const (
	InitiatorSelf      Initiator = "self"
	InitiatorParent    Initiator = "parent"
	InitiatorOperator  Initiator = "operator"
	InitiatorTriggered Initiator = "triggered"
	InitiatorTimeout   Initiator = "timeout"
	InitiatorPolicy    Initiator = "policy"
)

// Hold keeps a run from beginning any model or tool call, whatever else it waits for. A
// run has at most two holds: its own, and one that it inherits from an ancestor.
type Hold struct {
	ID   string   `json:"id"` // "h-3", counted over the life of the held session
	From HoldFrom `json:"from"`
	// Session is the session that was held. All runs below it inherit the hold.
	Session string `json:"session"`
	// Initiator is who added the hold: an operator, the parent, or the runtime (policy). An inherited
	// hold is the parent's.
	Initiator Initiator `json:"initiator,omitempty"`
	Verb      Verb      `json:"verb"` // pause or interrupt
	By        string    `json:"by,omitempty"`
	// RemovedBy is who resumed or stopped the run, as far as they said; only hold.removed has it.
	RemovedBy string `json:"removed_by,omitempty"`
	// Code says why the runtime itself held the run; empty if somebody else did.
	Code   Code      `json:"code,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// HoldFrom is where a hold comes from.
type HoldFrom string

// The sources of holds.
const (
	HoldOwn       HoldFrom = "own"       // sent to this session, or by its parent's model
	HoldInherited HoldFrom = "inherited" // sent to an ancestor
)

// Request is something that a run asks people or programs. Its content never changes, so
// its id alone identifies what is answered.
type Request struct {
	ID   string      `json:"id"` // "q-7", counted over the session's life
	Type RequestType `json:"type"`
	// Session and Run are where to send the answer. Suspension is empty for a request of a flow
	// that was not suspended when it asked.
	Session    string   `json:"session"`
	Run        string   `json:"run"`
	Suspension string   `json:"suspension,omitempty"`
	Agent      string   `json:"agent"`
	Text       string   `json:"text"`
	Context    string   `json:"context,omitempty"`
	Choices    []string `json:"choices,omitempty"`
	// Schema is a JSON Schema of the answer's data; empty if the answer is a text or a
	// choice.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Call is the call that needs an approval, the client tool's call, or the call that
	// asks.
	Call *RequestCall `json:"call,omitempty"`
	// Step is the path of the flow's step that asks; empty outside of flows.
	Step string `json:"step,omitempty"`
	// Digest is the digest of the call's canonical arguments: 16 hex digits.
	Digest string `json:"digest,omitempty"`
	// Confirm is "digest" if the answer has to name the digest.
	Confirm   string   `json:"confirm,omitempty"`
	Approvers []string `json:"approvers,omitempty"`
	// Cause is the code of the limit that asks. It is "unknown" if the question is whether a flow's
	// step has had its effect.
	Cause    Code      `json:"cause,omitempty"`
	Opened   time.Time `json:"opened"`
	Deadline time.Time `json:"deadline,omitzero"`
	RemindAt time.Time `json:"remind_at,omitzero"`
	// Default is the decision at the deadline. Empty means reject for an approval, stop for a
	// limit, and that nobody answered for others.
	Default string `json:"default,omitempty"`
}

// RequestType says what is asked for. The set is closed.
type RequestType string

// The types of requests.
const (
	RequestQuestion   RequestType = "question"
	RequestApproval   RequestType = "approval"
	RequestClientTool RequestType = "client_tool"
	RequestLimit      RequestType = "limit"
)

// RequestCall is the call that a request is about.
type RequestCall struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// The decisions of an approval at its deadline.
const (
	DefaultReject  = "reject"
	DefaultApprove = "approve"
)

// StepWait is what one step of a flow waits for.
type StepWait struct {
	Step       string     `json:"step"` // its path
	Conditions Conditions `json:"conditions"`
}

// Conditions say what ends a park. With the zero value, only a resume does.
type Conditions struct {
	// At is a time. After is a duration from now.
	At    time.Time `json:"at,omitzero"`
	After Duration  `json:"after,omitempty"`
	// Event is met by an emitted event.
	Event *EventCondition `json:"event,omitempty"`
	// Any are several conditions. The first that is met ends the park.
	Any []Condition `json:"any,omitempty"`
	// OnTimeout says what happens when the time comes; empty means resume_with_summary.
	OnTimeout OnTimeout `json:"on_timeout,omitempty"`
	// Input is the message to the model under resume_with_input.
	Input string `json:"input,omitempty"`
}

// Condition is one of several in [Conditions].
type Condition struct {
	At    time.Time       `json:"at,omitzero"`
	After Duration        `json:"after,omitempty"`
	Event *EventCondition `json:"event,omitempty"`
}

// EventCondition is met by an event of its topic whose payload fits its schema.
type EventCondition struct {
	Topic string          `json:"topic"`
	Match json.RawMessage `json:"match,omitempty"` // a JSON Schema; empty means every payload
}

// OnTimeout says what happens when a parked run's time comes.
type OnTimeout string

// The values of OnTimeout.
const (
	OnTimeoutResumeWithSummary OnTimeout = "resume_with_summary"
	OnTimeoutResumeWithInput   OnTimeout = "resume_with_input"
	OnTimeoutFail              OnTimeout = "fail"
	OnTimeoutCancel            OnTimeout = "cancel"
)

// List returns every single condition.
func (c Conditions) List() []Condition {
	list := c.Any[:len(c.Any):len(c.Any)]
	if !c.At.IsZero() || c.After > 0 || c.Event != nil {
		list = append(list, Condition{At: c.At, After: c.After, Event: c.Event})
	}
	return list
}

// size returns about how many bytes a request takes.
func (r Request) size() int {
	n := 256 + len(r.Text) + len(r.Context)
	if r.Call != nil {
		n += len(r.Call.Arguments)
	}
	return n
}
