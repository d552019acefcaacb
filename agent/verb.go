package agent

import (
	"encoding/json"
	"time"
)

// A Verb is something that one may say to a live run. Each is a signal and an
// update of the same name and payload (wire §4).
type Verb string

// The verbs of a live run.
const (
	Pause     Verb = "pause"
	Interrupt Verb = "interrupt"
	Resume    Verb = "resume"
	Stop      Verb = "stop"
	Cancel    Verb = "cancel"
	Send      Verb = "send"
	Answer    Verb = "answer"
	Approve   Verb = "approve"
	Reject    Verb = "reject"
	Answers   Verb = "answers"
	Emit      Verb = "emit"
)

// Strength orders the verbs that hold a run or end it: a stronger one overtakes
// a weaker one in progress. It is zero for every other verb (wire §4).
func (v Verb) Strength() int {
	switch v {
	case Pause:
		return 1
	case Interrupt:
		return 2
	case Stop:
		return 3
	case Cancel:
		return 4
	}
	return 0
}

// Order is what every verb takes.
type Order struct {
	// ID makes a second arrival harmless: it gets the first one's answer. Empty
	// means that of the update, where it came as one.
	ID string `json:"id,omitempty"`
	// By is who says so: a claim, recorded as one.
	By string `json:"by,omitempty"`
	// Run refuses the verb as [Stale] where another run of the session is live.
	Run string `json:"run,omitempty"`
	// Token proves who says it, where approvers or a policy bind the verb. It is taken in
	// updates only. Of several answers each has its own.
	Token string `json:"token,omitempty"`
	// Meta is the sender's own: it is never looked at.
	Meta json.RawMessage `json:"meta,omitempty"`
}

// PauseOrder holds the run at its turn's end.
type PauseOrder struct {
	Order
	Reason string `json:"reason,omitempty"`
}

// InterruptOrder holds the run at once.
type InterruptOrder struct {
	Order
	Reason string `json:"reason,omitempty"`
	// Grace is how long tools may take to give a partial result; zero means 5s.
	Grace Duration `json:"grace,omitempty"`
}

// ResumeOrder lifts the session's own hold and wakes a run that waits for nothing
// that somebody has to say.
type ResumeOrder struct {
	Order
	// Suspension refuses the verb as [Stale] where another one is open.
	Suspension string `json:"suspension,omitempty"`
	// Message is said to the model first.
	Message string `json:"message,omitempty"`
	// Fresh goes on from a summary of what was said, and not from all of it.
	Fresh bool `json:"fresh,omitempty"`
}

// StopOrder ends the run with a handoff.
type StopOrder struct {
	Order
	Reason string `json:"reason,omitempty"`
	// Deadline is when the tree ends whatever is missing; zero means 30s.
	Deadline Duration `json:"deadline,omitempty"`
}

// CancelOrder ends the run at once.
type CancelOrder struct {
	Order
	Reason string `json:"reason,omitempty"`
}

// SendOrder says something to the run.
type SendOrder struct {
	Order
	Text  string `json:"text,omitempty"`
	Parts []Part `json:"parts,omitempty"`
	// Mode says when; empty means steer.
	Mode SendMode `json:"mode,omitempty"`
}

// SendMode says when a message reaches the model.
type SendMode string

// The modes of a message.
const (
	SendSteer     SendMode = "steer"     // at the next turn
	SendQueue     SendMode = "queue"     // when the run would be done
	SendInterrupt SendMode = "interrupt" // now: what is in flight is given up
)

// AnswerOrder answers a question, a limit, or a call that the client makes. One
// of its last three fields is wanted.
type AnswerOrder struct {
	Order
	Request string `json:"request,omitempty"`
	Text    string `json:"text,omitempty"`
	// Choice is the number of one of the request's choices, from 0.
	Choice *int `json:"choice,omitempty"`
	// Data is a client tool's result.
	Data json.RawMessage `json:"data,omitempty"`
}

// ApproveOrder lets a call be made.
type ApproveOrder struct {
	Order
	Request string `json:"request,omitempty"`
	// Arguments replace the model's.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Always approves every further call of the tool in this run.
	Always bool `json:"always,omitempty"`
	// Digest refuses the verb as [Stale] where the arguments are others.
	Digest string `json:"digest,omitempty"`
	Note   string `json:"note,omitempty"`
}

// RejectOrder refuses a call; the model sees the reason.
type RejectOrder struct {
	Order
	Request string `json:"request,omitempty"`
	Reason  string `json:"reason"`
}

// AnswersOrder answers several requests together: all or none.
type AnswersOrder struct {
	Order
	Answers []AnswerTo `json:"answers"`
}

// AnswerTo is one of several answers; one of its last three fields is wanted.
type AnswerTo struct {
	Request string        `json:"request"`
	Answer  *AnswerOrder  `json:"answer,omitempty"`
	Approve *ApproveOrder `json:"approve,omitempty"`
	Reject  *RejectOrder  `json:"reject,omitempty"`
}

// EmitOrder tells a run of an event.
type EmitOrder struct {
	Order
	Topic   string          `json:"topic"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Ack is a verb's answer: its effect is decided, whether or not the run has
// come to rest (wire §4).
type Ack struct {
	V          int    `json:"v"`
	Session    string `json:"session"`
	Run        string `json:"run"`
	Status     Status `json:"status"`
	Suspension string `json:"suspension,omitempty"` // the open one
	Seq        int64  `json:"seq"`
	Effect     Effect `json:"effect"`
}

// Effect is what became of a verb.
type Effect string

// What can become of a verb that is not refused.
const (
	Accepted Effect = "accepted"
	Already  Effect = "already" // the same or a stronger one stands: the first is returned
	Moot     Effect = "moot"    // the run came to its end by itself first
)

// RefusedVerb is a verb that was refused though it could not be told: it came as a
// signal (wire §1).
type RefusedVerb struct {
	Verb  string    `json:"verb"`
	How   string    `json:"how"` // signal
	At    time.Time `json:"at"`
	Error *Error    `json:"error"`
}

// Command is what is said to a run: a verb with its payload.
type Command interface {
	// Verb is its name on the wire.
	Verb() Verb
	// Common is what every verb takes.
	Common() Order
}

// Common is the order itself.
func (o Order) Common() Order { return o }

// Verb is [Pause].
func (PauseOrder) Verb() Verb { return Pause }

// Verb is [Interrupt].
func (InterruptOrder) Verb() Verb { return Interrupt }

// Verb is [Resume].
func (ResumeOrder) Verb() Verb { return Resume }

// Verb is [Stop].
func (StopOrder) Verb() Verb { return Stop }

// Verb is [Cancel].
func (CancelOrder) Verb() Verb { return Cancel }

// Verb is [Send].
func (SendOrder) Verb() Verb { return Send }

// Verb is [Answer].
func (AnswerOrder) Verb() Verb { return Answer }

// Verb is [Approve].
func (ApproveOrder) Verb() Verb { return Approve }

// Verb is [Reject].
func (RejectOrder) Verb() Verb { return Reject }

// Verb is [Answers].
func (AnswersOrder) Verb() Verb { return Answers }

// Verb is [Emit].
func (EmitOrder) Verb() Verb { return Emit }
