package agent

import (
	"encoding/json"
	"time"
)

// A Verb is something that one may say to a live run. Each is a signal and an
// update of the same name and payload (docs/wire.md §4).
type Verb string

// The verbs of a live run.
const (
	VerbPause     Verb = "pause"
	VerbInterrupt Verb = "interrupt"
	VerbResume    Verb = "resume"
	VerbStop      Verb = "stop"
	VerbCancel    Verb = "cancel"
	VerbSend      Verb = "send"
	VerbAnswer    Verb = "answer"
	VerbApprove   Verb = "approve"
	VerbReject    Verb = "reject"
	VerbAnswers   Verb = "answers"
	VerbEmit      Verb = "emit"
)

// Strength orders the verbs that hold a run or end it: a stronger one overtakes
// a weaker one in progress. It is zero for every other verb (docs/wire.md §4).
func (v Verb) Strength() int {
	switch v {
	case VerbPause:
		return 1
	case VerbInterrupt:
		return 2
	case VerbStop:
		return 3
	case VerbCancel:
		return 4
	}
	return 0
}

// CommandHeader is what every verb takes.
type CommandHeader struct {
	// ID makes a second arrival harmless: it gets the first one's answer. Empty
	// means that of the update, where it came as one.
	ID string `json:"id,omitempty"`
	// By is who says so: a claim, recorded as one.
	By string `json:"by,omitempty"`
	// Run refuses the verb as [CodeStale] where another run of the session is live.
	Run string `json:"run,omitempty"`
	// Token proves who says it, where approvers or a policy bind the verb. It is taken in
	// updates only. Of several answers each has its own.
	Token string `json:"token,omitempty"`
	// Meta is the sender's own: it is never looked at.
	Meta json.RawMessage `json:"meta,omitempty"`
}

// PauseCommand holds the run at its turn's end.
type PauseCommand struct {
	CommandHeader
	Reason string `json:"reason,omitempty"`
}

// InterruptCommand holds the run at once.
type InterruptCommand struct {
	CommandHeader
	Reason string `json:"reason,omitempty"`
	// Grace is how long tools may take to give a partial result; zero means 5s.
	Grace Duration `json:"grace,omitempty"`
}

// ResumeCommand removes the session's own hold and wakes a run that waits for nothing
// that somebody has to say.
type ResumeCommand struct {
	CommandHeader
	// Suspension refuses the verb as [CodeStale] where another one is open.
	Suspension string `json:"suspension,omitempty"`
	// Message is said to the model first.
	Message string `json:"message,omitempty"`
	// FromSummary goes on from a summary of what was said, and not from all of it.
	FromSummary bool `json:"from_summary,omitempty"`
}

// StopCommand ends the run with a handoff.
type StopCommand struct {
	CommandHeader
	Reason string `json:"reason,omitempty"`
	// Deadline is when the tree ends whatever is missing; zero means 30s.
	Deadline Duration `json:"deadline,omitempty"`
}

// CancelCommand ends the run at once.
type CancelCommand struct {
	CommandHeader
	Reason string `json:"reason,omitempty"`
}

// SendCommand says something to the run.
type SendCommand struct {
	CommandHeader
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

// AnswerCommand answers a question, a limit, or a call that the client makes. One
// of its last three fields is wanted.
type AnswerCommand struct {
	CommandHeader
	Request string `json:"request,omitempty"`
	Text    string `json:"text,omitempty"`
	// Choice is the number of one of the request's choices, from 0.
	Choice *int `json:"choice,omitempty"`
	// Data is a client tool's result.
	Data json.RawMessage `json:"data,omitempty"`
}

// ApproveCommand lets a call be made.
type ApproveCommand struct {
	CommandHeader
	Request string `json:"request,omitempty"`
	// Arguments replace the model's.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Always approves every further call of the tool in this run.
	Always bool `json:"always,omitempty"`
	// Digest refuses the verb as [CodeStale] where the arguments are others.
	Digest string `json:"digest,omitempty"`
	Note   string `json:"note,omitempty"`
}

// RejectCommand refuses a call; the model sees the reason.
type RejectCommand struct {
	CommandHeader
	Request string `json:"request,omitempty"`
	Reason  string `json:"reason"`
}

// AnswersCommand answers several requests together: all or none.
type AnswersCommand struct {
	CommandHeader
	Answers []AnswerTo `json:"answers"`
}

// AnswerTo is one of several answers; one of its last three fields is wanted.
type AnswerTo struct {
	Request string          `json:"request"`
	Answer  *AnswerCommand  `json:"answer,omitempty"`
	Approve *ApproveCommand `json:"approve,omitempty"`
	Reject  *RejectCommand  `json:"reject,omitempty"`
}

// Commands returns what is said to the request: one command in a sound answer.
func (a AnswerTo) Commands() (all []Command) {
	if a.Answer != nil {
		all = append(all, *a.Answer)
	}
	if a.Approve != nil {
		all = append(all, *a.Approve)
	}
	if a.Reject != nil {
		all = append(all, *a.Reject)
	}
	return all
}

// EmitCommand tells a run of an event.
type EmitCommand struct {
	CommandHeader
	Topic   string          `json:"topic"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Ack is a verb's answer: its effect is decided, whether or not the run has
// come to rest (docs/wire.md §4).
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
	EffectAccepted Effect = "accepted"
	EffectAlready  Effect = "already"   // the same or a stronger one stands: the first is returned
	EffectRunEnded Effect = "run_ended" // the run came to its end by itself first
)

// RefusedVerb is a verb that was refused though it could not be told: it came as a
// signal (docs/wire.md §1).
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
	// Header is what every verb takes.
	Header() CommandHeader
}

// Header is the order itself.
func (o CommandHeader) Header() CommandHeader { return o }

// Verb is [VerbPause].
func (PauseCommand) Verb() Verb { return VerbPause }

// Verb is [VerbInterrupt].
func (InterruptCommand) Verb() Verb { return VerbInterrupt }

// Verb is [VerbResume].
func (ResumeCommand) Verb() Verb { return VerbResume }

// Verb is [VerbStop].
func (StopCommand) Verb() Verb { return VerbStop }

// Verb is [VerbCancel].
func (CancelCommand) Verb() Verb { return VerbCancel }

// Verb is [VerbSend].
func (SendCommand) Verb() Verb { return VerbSend }

// Verb is [VerbAnswer].
func (AnswerCommand) Verb() Verb { return VerbAnswer }

// Verb is [VerbApprove].
func (ApproveCommand) Verb() Verb { return VerbApprove }

// Verb is [VerbReject].
func (RejectCommand) Verb() Verb { return VerbReject }

// Verb is [VerbAnswers].
func (AnswersCommand) Verb() Verb { return VerbAnswers }

// Verb is [VerbEmit].
func (EmitCommand) Verb() Verb { return VerbEmit }
