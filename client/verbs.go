package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Pause holds the run and all below it when the turn in progress has ended. Like
// every verb of a run, it answers when the effect is decided ([Run.Wait] waits
// for the rest), and is refused with [agent.CodeClosed] or [agent.CodeStale] where this
// run has ended, with [agent.CodeNoWorker] or [agent.CodeTimeout] where nobody answers.
func (r *Run) Pause(ctx context.Context, reason string) (agent.Ack, error) {
	return r.update(ctx, agent.PauseCommand{CommandHeader: r.header(), Reason: reason})
}

// Interrupt holds the run and all below it at once: model calls are given up,
// tools have 5 s to give a partial result. Errors are those of [Run.Pause].
func (r *Run) Interrupt(ctx context.Context, reason string) (agent.Ack, error) {
	return r.update(ctx, agent.InterruptCommand{CommandHeader: r.header(), Reason: reason})
}

// ResumeOptions are optional; nil means all defaults.
type ResumeOptions struct {
	// Suspension refuses the resume as [agent.CodeStale] where another one is open;
	// empty means whichever is.
	Suspension string
	// Message is said to the model first; empty means nothing.
	Message string
	// Fresh goes on from a summary of what was said, and not from all of it.
	Fresh bool
	// By is who says so: a claim, recorded as one.
	By string
	// Token proves who says so, where a policy binds the verb.
	Token string
}

// Resume removes the run's own hold, with all below it, and wakes a run that waits
// for nothing that somebody has to say. Errors are those of [Run.Pause], and
// [agent.CodeNotSuspended], [agent.CodeNeedsAnswer] and [agent.CodeHeldByParent].
func (r *Run) Resume(ctx context.Context, o *ResumeOptions) (agent.Ack, error) {
	if o == nil {
		o = &ResumeOptions{}
	}
	order := r.header()
	order.By, order.Token = o.By, o.Token
	return r.update(ctx, agent.ResumeCommand{CommandHeader: order, Suspension: o.Suspension, Message: o.Message, FromSummary: o.Fresh})
}

// Stop ends the run and all below it with a handoff: what they are at is drained
// until the deadline, from 2 s to 1 h; zero means 30 s. Errors are those of
// [Run.Pause], and [agent.CodeInvalidInput] for another deadline.
func (r *Run) Stop(ctx context.Context, reason string, deadline time.Duration) (agent.Ack, error) {
	return r.update(ctx, agent.StopCommand{CommandHeader: r.header(), Reason: reason, Deadline: agent.Duration(deadline)})
}

// Cancel ends the run and all below it at once. A run that has ended already
// stays as it is: the effect is [agent.EffectAlready] and the status its own.
func (r *Run) Cancel(ctx context.Context, reason string) (agent.Ack, error) {
	ack, err := r.update(ctx, agent.CancelCommand{CommandHeader: r.header(), Reason: reason})
	if !errors.Is(err, agent.CodeClosed) && !errors.Is(err, agent.CodeStale) {
		return ack, err
	}
	info, lost := r.execution(ctx)
	if lost != nil || open(info) {
		return ack, err
	}
	out, lost := r.Result(ctx)
	if lost != nil {
		return ack, fmt.Errorf("cancelling a run that has ended: %w", lost)
	}
	return agent.Ack{V: agent.Version, Session: r.Session, Run: r.ID, Status: out.Status, Seq: out.Seq, Effect: agent.EffectAlready}, nil
}

// CanResume returns nil if a resume that says nothing would be taken now, else why not: an
// error with the code of [Run.Resume]'s refusal, or one of [Run.Status]. The answer may be
// old when it arrives: [Run.Resume] alone decides.
func (r *Run) CanResume(ctx context.Context) error {
	s, err := r.Status(ctx)
	if err != nil {
		return err
	}
	return s.Resumable(time.Now())
}

// Suspension is why the run waits and on what, nil if it does not. Errors are
// those of [Run.Status].
func (r *Run) Suspension(ctx context.Context) (*agent.Suspension, error) {
	s, err := r.Status(ctx)
	return s.Suspension, err
}

// header makes a verb one for this run alone.
func (r *Run) header() agent.CommandHeader { return agent.CommandHeader{Run: r.ID} }

func (r *Run) update(ctx context.Context, command agent.Command) (agent.Ack, error) {
	ack, err := r.client.update(ctx, r.Session, command)
	if err == nil {
		r.noteSeq(ack.Seq)
	}
	if err == nil && command.Verb().Strength() >= agent.VerbStop.Strength() {
		r.ending.Store(true)
	}
	return ack, err
}

// noteSeq remembers how far the run's log was when something was said: what was
// before is no rest after it.
func (r *Run) noteSeq(seq int64) {
	for old := r.seq.Load(); seq > old && !r.seq.CompareAndSwap(old, seq); old = r.seq.Load() {
	}
}
