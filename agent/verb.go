package agent

import (
	"encoding/json"
	"time"
)

// A Verb is what one may send to a live run. Each verb is a signal and an update of the
// same name and payload (docs/wire.md §4).
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

// Strength returns the order of the verbs that hold or end a run. A stronger verb
// overtakes a weaker one in progress. It is zero for every other verb (docs/wire.md §4).
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

// CommandHeader has the fields that every verb has.
type CommandHeader struct {
	// ID makes a repeated command harmless: the second one gets the first one's answer.
	// Empty means the update's own id, if the command is an update.
	ID string `json:"id,omitempty"`
	// By says who sends the verb. It is logged, and not authenticated.
	By string `json:"by,omitempty"`
	// Run is the run that is meant. If another run of the session is live, the verb is
	// refused with [CodeStale]. Empty means whichever is live.
	Run string `json:"run,omitempty"`
	// Token proves who sends the verb, if a request names approvers or a policy binds the
	// verb. Only updates can carry one. In an answers command each answer has its own.
	Token string `json:"token,omitempty"`
	// Meta is the sender's own JSON. The run ignores it.
	Meta json.RawMessage `json:"meta,omitempty"`
}

// PauseCommand holds the run at the end of its turn.
type PauseCommand struct {
	CommandHeader
	Reason string `json:"reason,omitempty"`
}

// InterruptCommand holds the run at once.
type InterruptCommand struct {
	CommandHeader
	Reason string `json:"reason,omitempty"`
	// Grace is how long tools may take to return a partial result; zero means 5s.
	Grace Duration `json:"grace,omitempty"`
}

// ResumeCommand removes the session's own hold. It also wakes a parked run. A run that
// waits for an answer stays suspended.
type ResumeCommand struct {
	CommandHeader
	// Suspension is the suspension that is meant. If another one is open, the verb is
	// refused with [CodeStale].
	Suspension string `json:"suspension,omitempty"`
	// Message goes to the model first.
	Message string `json:"message,omitempty"`
	// Parts are more of the message: text, and files of the session.
	Parts []Part `json:"parts,omitempty"`
	// FromSummary continues from a summary of the conversation instead of all of it.
	FromSummary bool `json:"from_summary,omitempty"`
	// Refresh lets the run go on with the instructions that the agent has now in the worker's build.
	// Nothing else of the agent changes. False keeps those that the run has.
	Refresh bool `json:"refresh,omitempty"`
}

// StopCommand ends the run with a handoff.
type StopCommand struct {
	CommandHeader
	// Reason is why. A blank one is [ReasonRequested].
	Reason string `json:"reason,omitempty" blank:"default"`
	// Deadline is when the tree ends, whatever is missing then; zero means 30s.
	Deadline Duration `json:"deadline,omitempty"`
}

// CancelCommand ends the run without a handoff. Calls in flight have 5 s to return; a second
// cancel ends that.
type CancelCommand struct {
	CommandHeader
	// Reason is why. A blank one is [ReasonRequested].
	Reason string `json:"reason,omitempty" blank:"default"`
}

// SendCommand sends a message to the model.
type SendCommand struct {
	CommandHeader
	Text  string `json:"text,omitempty"`
	Parts []Part `json:"parts,omitempty"`
	// Mode says when the message reaches the model; empty means steer.
	Mode SendMode `json:"mode,omitempty"`
	// Skills are names of the agent's skills that are active from the next turn on.
	Skills []string `json:"skills,omitempty"`
}

// AllParts returns the parts of the message: the text, if there is one, and Parts.
func (c SendCommand) AllParts() (all []Part) {
	if c.Text != "" {
		all = append(all, Part{Type: PartText, Text: c.Text})
	}
	return append(all, c.Parts...)
}

// SendMode says when a message reaches the model.
type SendMode string

// The modes of a message.
const (
	SendSteer     SendMode = "steer"     // at the next turn
	SendQueue     SendMode = "queue"     // when the run would complete
	SendInterrupt SendMode = "interrupt" // now: what is in flight is cancelled
)

// AnswerCommand answers a question, a limit, or a client tool's call. Text, Choice or Data
// is required, unless there are Parts.
type AnswerCommand struct {
	CommandHeader
	Request string `json:"request,omitempty"`
	Text    string `json:"text,omitempty"`
	// Choice is the number of one of the request's choices, from 0.
	Choice *int `json:"choice,omitempty"`
	// Data is a client tool's result.
	Data json.RawMessage `json:"data,omitempty"`
	// Parts are files of the session. The model gets them in a message after the answer.
	Parts []Part `json:"parts,omitempty"`
}

// ApproveCommand approves a call.
type ApproveCommand struct {
	CommandHeader
	Request string `json:"request,omitempty"`
	// Arguments replace the model's arguments; empty keeps them.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Always approves every further call of the tool in this run.
	Always bool `json:"always,omitempty"`
	// AlwaysInSession does so for the session's later runs, too, if the same principal starts them
	// with the same agent. Those that begin from a checkpoint or with carry: reset ask again.
	AlwaysInSession bool `json:"always_in_session,omitempty" since:"2"`
	// Digest is the digest of the arguments that are approved. If the call has others,
	// the verb is refused with [CodeStale].
	Digest string `json:"digest,omitempty"`
	Note   string `json:"note,omitempty"`
}

// RejectCommand rejects a call. The model gets the reason.
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

// AnswerTo is one of several answers. One of its last three fields is required.
type AnswerTo struct {
	Request string          `json:"request"`
	Answer  *AnswerCommand  `json:"answer,omitempty"`
	Approve *ApproveCommand `json:"approve,omitempty"`
	Reject  *RejectCommand  `json:"reject,omitempty"`
}

// Commands returns the commands for the request. A valid answer has one.
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

// EmitCommand delivers an event to a run.
type EmitCommand struct {
	CommandHeader
	Topic   string          `json:"topic"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Ack is the answer to a verb. The verb's effect is decided then, but the run may still
// be suspending or ending (docs/wire.md §4).
type Ack struct {
	V          int    `json:"v"`
	Session    string `json:"session"`
	Run        string `json:"run"`
	Status     Status `json:"status"`
	Suspension string `json:"suspension,omitempty"` // the open one
	Seq        int64  `json:"seq"`
	Effect     Effect `json:"effect"`
	// Hold is the session's own hold, in the answer to a pause or an interrupt. If the effect is
	// already, it is the one that stood before.
	Hold *AckHold `json:"hold,omitempty"`
}

// AckHold is a hold in an [Ack]: the kind of the open suspension, and who holds the run since when,
// and why. Its texts are the first 120 characters.
type AckHold struct {
	Kind      SuspensionKind `json:"kind"`
	Initiator Initiator      `json:"initiator"`
	Verb      Verb           `json:"verb"` // pause or interrupt
	By        string         `json:"by,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	Since     time.Time      `json:"since"`
}

// Effect is what a verb did.
type Effect string

// The effects of a verb that is not refused.
const (
	EffectAccepted Effect = "accepted"
	EffectAlready  Effect = "already"   // the same or a stronger verb is in effect: its answer is returned
	EffectRunEnded Effect = "run_ended" // the run had ended by itself first
)

// RefusedVerb is a signal that was refused. Its sender gets no answer (docs/wire.md §1).
type RefusedVerb struct {
	Verb string `json:"verb"`
	How  string `json:"how"` // signal
	// By is who sent it, as far as they said; not authenticated, and at most 256 bytes. It is empty if the
	// payload is refused.
	By    string    `json:"by,omitempty"`
	At    time.Time `json:"at"`
	Error *Error    `json:"error"`
}

// Command is a verb with its payload.
type Command interface {
	// Verb returns the verb's name on the wire.
	Verb() Verb
	// Header returns the fields that every verb has.
	Header() CommandHeader
}

// Header returns the header itself.
func (o CommandHeader) Header() CommandHeader { return o }

// Verb returns [VerbPause].
func (PauseCommand) Verb() Verb { return VerbPause }

// Verb returns [VerbInterrupt].
func (InterruptCommand) Verb() Verb { return VerbInterrupt }

// Verb returns [VerbResume].
func (ResumeCommand) Verb() Verb { return VerbResume }

// Verb returns [VerbStop].
func (StopCommand) Verb() Verb { return VerbStop }

// Verb returns [VerbCancel].
func (CancelCommand) Verb() Verb { return VerbCancel }

// Verb returns [VerbSend].
func (SendCommand) Verb() Verb { return VerbSend }

// Verb returns [VerbAnswer].
func (AnswerCommand) Verb() Verb { return VerbAnswer }

// Verb returns [VerbApprove].
func (ApproveCommand) Verb() Verb { return VerbApprove }

// Verb returns [VerbReject].
func (RejectCommand) Verb() Verb { return VerbReject }

// Verb returns [VerbAnswers].
func (AnswersCommand) Verb() Verb { return VerbAnswers }

// Verb returns [VerbEmit].
func (EmitCommand) Verb() Verb { return VerbEmit }
