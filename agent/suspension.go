package agent

import (
	"encoding/json"
	"time"
)

// Suspension is why a run waits, and on what. At most one is open per run.
type Suspension struct {
	ID        string         `json:"id"` // "s-14", counted over the session's life
	Kind      SuspensionKind `json:"kind"`
	Initiator Initiator      `json:"initiator"`
	// Cause says more of the kind; the set is open.
	Cause  string    `json:"cause,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Turn   int       `json:"turn"`
	Since  time.Time `json:"since"`
	// Expires is the earliest deadline of what is open; zero if there is none.
	Expires time.Time `json:"expires,omitzero"`
	// ResumeBy is until when a person may resume the run; zero if there is no bound (see
	// [Definition.ResumeWithin]). What it asks is answered for as long, counted from Since.
	ResumeBy time.Time `json:"resume_by,omitzero"`
	// Owner is who lets the run go on; empty if the suspension was told of by one
	// who does not know.
	Owner      Owner       `json:"owner,omitempty"`
	Requests   []Request   `json:"requests,omitempty"`
	Conditions *Conditions `json:"conditions,omitempty"`
	Holds      []Hold      `json:"holds,omitempty"`
}

// SuspensionKind is what a run waits for; the set is closed.
type SuspensionKind string

// The kinds of suspensions.
const (
	SuspensionInputRequired    SuspensionKind = "input_required" // a question, an approval, a limit that asks, a client's tool
	SuspensionHeld             SuspensionKind = "held"           // held by an operator, a parent, an interrupt
	SuspensionParked           SuspensionKind = "parked"         // parked on a time, an event, or until somebody resumes
	SuspensionAwaitingChildren SuspensionKind = "awaiting_children"
	SuspensionAwaitingBudget   SuspensionKind = "awaiting_budget" // for a grant of what limits bound
)

// Owner is who lets a suspended run go on: exactly one at a time; the set is closed.
type Owner string

// The owners.
const (
	OwnerOperator Owner = "operator" // whoever answers, or resumes
	OwnerParent   Owner = "parent"   // the run above, which holds it
	OwnerRuntime  Owner = "runtime"  // a time, an event, or the end of a run below
)

// Initiator is who made a run wait, or go on; the set is closed.
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

// Hold keeps a run from beginning any model or tool call, whatever else it waits
// for. A run has at most two: its own and one that it inherited.
type Hold struct {
	ID   string   `json:"id"` // "h-3", counted over the life of the session that was held
	From HoldFrom `json:"from"`
	// Session is the one that the hold was added to; its tree inherits it.
	Session string `json:"session"`
	Verb    Verb   `json:"verb"` // pause or interrupt
	By      string `json:"by,omitempty"`
	// Code says why the runtime held the run itself; empty if somebody said so.
	Code   Code      `json:"code,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// HoldFrom is where a hold comes from.
type HoldFrom string

// The sources of holds.
const (
	HoldOwn       HoldFrom = "own"       // said to this session, or by its parent's model
	HoldInherited HoldFrom = "inherited" // said to an ancestor
)

// Request is something that a run asks of people or programs. Its content never
// changes, so its id is enough to answer it.
type Request struct {
	ID   string      `json:"id"` // "q-7", counted over the session's life
	Type RequestType `json:"type"`
	// Session and Run are where it is answered.
	Session    string   `json:"session"`
	Run        string   `json:"run"`
	Suspension string   `json:"suspension"`
	Agent      string   `json:"agent"`
	Text       string   `json:"text"`
	Context    string   `json:"context,omitempty"`
	Choices    []string `json:"choices,omitempty"`
	// Schema is a JSON Schema of the answer's data, where such is wanted.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Call is what an approval or a client's tool is about, or the one that asks.
	Call *RequestCall `json:"call,omitempty"`
	// Digest is of the call's canonical arguments: 16 hex digits.
	Digest string `json:"digest,omitempty"`
	// Confirm is "digest" where the answer has to name the digest.
	Confirm   string   `json:"confirm,omitempty"`
	Approvers []string `json:"approvers,omitempty"`
	// Cause is the limit that asks.
	Cause    Code      `json:"cause,omitempty"`
	Opened   time.Time `json:"opened"`
	Deadline time.Time `json:"deadline,omitzero"`
	RemindAt time.Time `json:"remind_at,omitzero"`
	// Default is what the deadline decides.
	Default string `json:"default,omitempty"`
}

// RequestType is what is asked for; the set is closed.
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

// Decisions that a deadline may make of an approval.
const (
	DefaultReject  = "reject"
	DefaultApprove = "approve"
)

// Conditions say what ends a park. A zero value waits until somebody resumes.
type Conditions struct {
	// At is a time; After is one from now.
	At    time.Time `json:"at,omitzero"`
	After Duration  `json:"after,omitempty"`
	// Event is an event that is emitted.
	Event *EventCondition `json:"event,omitempty"`
	// Any are several of these; the first to come true wins.
	Any []Condition `json:"any,omitempty"`
	// OnTimeout says what a time that has come means; empty means resume_with_summary.
	OnTimeout OnTimeout `json:"on_timeout,omitempty"`
	// Input is said to the model under resume_with_input.
	Input string `json:"input,omitempty"`
}

// Condition is one of several.
type Condition struct {
	At    time.Time       `json:"at,omitzero"`
	After Duration        `json:"after,omitempty"`
	Event *EventCondition `json:"event,omitempty"`
}

// EventCondition is met by an event of its topic whose payload fits its schema.
type EventCondition struct {
	Topic string          `json:"topic"`
	Match json.RawMessage `json:"match,omitempty"` // a JSON Schema; absent: every payload
}

// OnTimeout is what a time that has come means to a run that waits for it.
type OnTimeout string

// What a time that has come can mean.
const (
	OnTimeoutResumeWithSummary OnTimeout = "resume_with_summary"
	OnTimeoutResumeWithInput   OnTimeout = "resume_with_input"
	OnTimeoutFail              OnTimeout = "fail"
	OnTimeoutCancel            OnTimeout = "cancel"
)

// List is every single condition.
func (c Conditions) List() []Condition {
	list := c.Any[:len(c.Any):len(c.Any)]
	if !c.At.IsZero() || c.After > 0 || c.Event != nil {
		list = append(list, Condition{At: c.At, After: c.After, Event: c.Event})
	}
	return list
}

// size is about how many bytes a request takes.
func (r Request) size() int {
	n := 256 + len(r.Text) + len(r.Context)
	if r.Call != nil {
		n += len(r.Call.Arguments)
	}
	return n
}
