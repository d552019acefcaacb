package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// PauseOptions are optional; nil means all defaults.
type PauseOptions struct {
	// By says who pauses. It is logged, and not authenticated.
	By string
	// Token proves who pauses. A policy that binds the verb needs it.
	Token string
}

// Pause holds the run and all runs below it when their turns end. It returns once the
// run has decided; [Run.Wait] waits until it is suspended. Errors, the same for
// every verb of a run: [agent.CodeClosed] or [agent.CodeStale] if the run has ended,
// [agent.CodeNoWorker] or [agent.CodeTimeout] if no worker answers, and those of tokens
// ([agent.CodeDenied], [agent.CodeBadSignature], [agent.CodeExpired], [agent.CodeUsed])
// if a policy binds the verb.
func (r *Run) Pause(ctx context.Context, reason string, o *PauseOptions) (agent.Ack, error) {
	o = cmp.Or(o, &PauseOptions{})
	return r.update(ctx, agent.PauseCommand{CommandHeader: r.header(o.By, o.Token), Reason: reason})
}

// InterruptOptions are optional; nil means all defaults.
type InterruptOptions struct {
	// Grace is how long tools may take to return a partial result; zero means 5 s. At most one
	// minute.
	Grace time.Duration
	// By says who interrupts. It is logged, and not authenticated.
	By string
	// Token proves who interrupts. A policy that binds the verb needs it.
	Token string
}

// Interrupt holds the run and all runs below it at once. Model calls are cancelled, and
// tools have a grace period to return a partial result. The answer says suspending or, if all
// that the run itself had in flight has ended within its second, suspended; runs below it may
// still work then. If another verb overtakes it, the answer says how the run stands then, and its
// Hold is nil. Errors are those of [Run.Pause],
// and [agent.CodeInvalidInput] for a grace period that is out of range.
func (r *Run) Interrupt(ctx context.Context, reason string, o *InterruptOptions) (agent.Ack, error) {
	o = cmp.Or(o, &InterruptOptions{})
	return r.update(ctx, agent.InterruptCommand{CommandHeader: r.header(o.By, o.Token), Reason: reason, Grace: agent.Duration(o.Grace)})
}

// ResumeOptions are optional; nil means all defaults.
type ResumeOptions struct {
	// Suspension is the suspension that is meant. If another one is open, the resume is
	// refused with [agent.CodeStale]. Empty means whichever is open.
	Suspension string
	// Message goes to the model first; empty means no message.
	Message string
	// Files are stored with the session, and go to the model after Message; see
	// [Client.PutFiles].
	Files []FileInput
	// FromSummary continues from a summary of the conversation instead of all of it.
	FromSummary bool
	// Refresh lets the run go on with the instructions that the agent has now in the worker's build;
	// false keeps those that the run has. Nothing else of the agent changes.
	Refresh bool
	// By says who resumes. It is logged, and not authenticated.
	By string
	// Token proves who resumes. A policy that binds the verb needs it.
	Token string
}

// ResumedRun is a run that was resumed, as a new handle. Its [Run.Wait] ignores the suspension that
// the resume ended, and what else was said through the handle that resumed it. That one stays good:
// it reads the same run, and the contexts of its [Run.EndWith] still end it.
type ResumedRun struct {
	*Run
	// Ack says what the resume did, such as [agent.EffectRunEnded] if the run ended first.
	Ack agent.Ack
}

// Resume removes the run's own hold, which all runs below it inherit. It also wakes a
// parked run. A run that waits for an answer keeps waiting. It returns a handle to go on
// with. Errors are those of [Run.Pause], and [agent.CodeNotSuspended], [agent.CodeNeedsAnswer] and
// [agent.CodeHeldByParent]. If the agent has hooks before a resume, Resume returns when they have
// decided: a refusal has [agent.CodeDenied], and the run stays suspended. With Refresh it stays suspended,
// too, if the worker's build lacks the agent ([agent.CodeUnknownAgent]); [agent.CodeInvalidInput] means that
// the run is a flow.
func (r *Run) Resume(ctx context.Context, o *ResumeOptions) (*ResumedRun, error) {
	o = cmp.Or(o, &ResumeOptions{})
	files, err := r.client.PutFiles(ctx, r.Session, o.Files...)
	if err != nil {
		return nil, fmt.Errorf("resume refused: %w", err)
	}
	ack, err := r.update(ctx, agent.ResumeCommand{CommandHeader: r.header(o.By, o.Token), Suspension: o.Suspension, Message: o.Message, Parts: files, FromSummary: o.FromSummary, Refresh: o.Refresh})
	if err != nil {
		return nil, err
	}
	return &ResumedRun{Run: r.client.RunOf(ack), Ack: ack}, nil
}

// StopOptions are optional; nil means all defaults.
type StopOptions struct {
	// Deadline is when the tree ends, whatever is missing then: 2 s to 1 h from now; zero
	// means 30 s.
	Deadline time.Duration
	// By says who stops. It is logged, and not authenticated.
	By string
	// Token proves who stops. A policy that binds the verb needs it.
	Token string
}

// Stop ends the run and all runs below it with a handoff. Calls in flight may end until
// the deadline. Errors are those of [Run.Pause], and [agent.CodeInvalidInput] for a
// deadline that is out of range.
func (r *Run) Stop(ctx context.Context, reason string, o *StopOptions) (agent.Ack, error) {
	o = cmp.Or(o, &StopOptions{})
	return r.update(ctx, agent.StopCommand{CommandHeader: r.header(o.By, o.Token), Reason: reason, Deadline: agent.Duration(o.Deadline)})
}

// CancelOptions are optional; nil means all defaults.
type CancelOptions struct {
	// By says who cancels. It is logged, and not authenticated.
	By string
	// Token proves who cancels. A policy that binds the verb needs it.
	Token string
}

// Cancel ends the run and all runs below it, without a handoff. It returns once the run has
// decided. Calls in flight are cancelled: what they return within 5 s is kept, and then they are
// unknown. Until the run ends, which [Run.Result] waits for, its status is running with the reason
// [agent.ReasonCancelling]. A second Cancel ends the wait for the calls. A run that has ended
// already stays as it is: the effect is then [agent.EffectAlready] and the status the run's own.
// Other errors are those of [Run.Pause].
func (r *Run) Cancel(ctx context.Context, reason string, o *CancelOptions) (agent.Ack, error) {
	o = cmp.Or(o, &CancelOptions{})
	ack, err := r.update(ctx, agent.CancelCommand{CommandHeader: r.header(o.By, o.Token), Reason: reason})
	if !errors.Is(err, agent.CodeClosed) && !errors.Is(err, agent.CodeStale) {
		return ack, err
	}
	// The run has ended, which is what the caller wanted.
	info, lost := r.execution(ctx)
	if lost != nil || !durable.Closed(info) {
		return ack, err
	}
	out, lost := r.Result(ctx)
	if lost != nil {
		return ack, fmt.Errorf("cancelling a run that has ended: %w", lost)
	}
	return agent.Ack{V: agent.Version, Session: r.Session, Run: r.ID, Status: out.Status, Seq: out.Seq, Effect: agent.EffectAlready}, nil
}

// CanResume returns nil if a resume without a message would succeed now. Otherwise it
// returns an error with the code of [Run.Resume]'s refusal, or an error of [Run.Status].
// The answer may be out of date when it arrives: only [Run.Resume] decides.
func (r *Run) CanResume(ctx context.Context) error {
	s, err := r.Status(ctx)
	if err != nil {
		return err
	}
	return s.Resumable(time.Now())
}

// Suspension returns why the run waits and for what; nil if it does not. Errors are those
// of [Run.Status].
func (r *Run) Suspension(ctx context.Context) (*agent.Suspension, error) {
	s, err := r.Status(ctx)
	return s.Suspension, err
}

// header returns a header that only this run accepts.
func (r *Run) header(by, token string) agent.CommandHeader {
	return agent.CommandHeader{Run: r.ID, By: by, Token: token}
}

func (r *Run) update(ctx context.Context, command agent.Command) (agent.Ack, error) {
	pause := r.pause.Load() // another goroutine may send a later one meanwhile
	ack, err := r.client.update(ctx, r.Session, command)
	if err == nil {
		r.took(command, ack, pause)
	}
	return ack, err
}

// took remembers what the run has answered to a verb, for [Run.Wait]. pause is the handle's pause as it was
// when the verb was sent.
func (r *Run) took(command agent.Command, ack agent.Ack, pause *string) {
	r.noteAck(ack)
	switch verb := command.Verb(); {
	case verb == agent.VerbResume:
		r.pause.CompareAndSwap(pause, nil) // it is over; a later pause is somebody else's
	case verb.Strength() >= agent.VerbStop.Strength():
		r.ending.Store(true)
	}
}

// noteAck remembers what an answer says, whichever verb it answers. Only that to a pause or an interrupt
// has a hold.
func (r *Run) noteAck(ack agent.Ack) {
	r.noteSeq(ack.Seq)
	if ack.Hold != nil {
		r.pause.Store(&ack.Suspension)
	}
}

// noteSeq remembers how far the run's log was when a verb was answered. A suspension from
// before that does not end a Wait.
func (r *Run) noteSeq(seq int64) {
	for old := r.seq.Load(); seq > old && !r.seq.CompareAndSwap(old, seq); old = r.seq.Load() {
	}
}
