package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// EndWith ends a run with a context: when the context is done, this program sends the run
// a verb. Without it no context ends a run, only the wait for it (HX-45). The zero value
// has no context and is refused.
//
// The context of an HTTP request is also done when its handler returns. A run that is to
// go on then needs [Run.Detach], or no EndWith.
//
// Only this program sends the verb. If it dies first, the run goes on: give the run a
// limit of time too ([agent.Limits]). If no worker answers, the verb waits for the next
// one; with a Token it is only tried for 15 s. A run that has ended already stays as it is.
type EndWith struct {
	// Context is required. One that is never done, such as [context.Background], sends
	// nothing.
	Context context.Context
	// Verb is [agent.VerbCancel], [agent.VerbStop] or [agent.VerbInterrupt]; empty means
	// cancel. An interrupt holds the run, which then waits for a resume.
	Verb agent.Verb
	// Reason is logged with the verb, and is the outcome's reason. Empty means why the
	// context is done: "context canceled" or "context deadline exceeded".
	Reason string
	// By says who sends the verb. It is logged, and not authenticated.
	By string
	// Token proves who sends the verb, if a policy binds it. It has to be valid when the
	// context is done. A verb with a token never waits in Temporal for the next worker: who
	// may send it is checked when it comes.
	Token string
}

const (
	// endWithin is how long the verb of a context that is done is tried. It includes the 3 s
	// in which an update waits for a worker.
	endWithin = 15 * time.Second
	// endAgain is the wait between two tries.
	endAgain = 700 * time.Millisecond
	// startWithin is how long a start with EndWith waits for the server's answer.
	startWithin = 10 * time.Second
)

// check refuses what can never be sent; nil is fine.
func (e *EndWith) check() error {
	switch {
	case e == nil:
		return nil
	case e.Context == nil:
		return agent.Errorf(agent.CodeInvalidInput, "EndWith has no context; the one that ends the run is needed").WithPath("end_with.context")
	}
	command, err := e.command("", "check")
	if err == nil {
		_, err = checkCommand(command)
	}
	return err
}

// command returns the verb that a run is sent.
func (e *EndWith) command(run, id string) (agent.Command, error) {
	header := agent.CommandHeader{Run: run, ID: id, By: e.By, Token: e.Token}
	reason := e.Reason
	if err := e.Context.Err(); reason == "" && err != nil {
		reason = err.Error()
	}
	switch cmp.Or(e.Verb, agent.VerbCancel) {
	case agent.VerbCancel:
		return agent.CancelCommand{CommandHeader: header, Reason: reason}, nil
	case agent.VerbStop:
		return agent.StopCommand{CommandHeader: header, Reason: reason}, nil
	case agent.VerbInterrupt:
		return agent.InterruptCommand{CommandHeader: header, Reason: reason}, nil
	}
	return nil, agent.Errorf(agent.CodeInvalidInput, "no context can end a run with %q: name cancel, stop or interrupt", e.Verb).WithPath("end_with.verb")
}

// begins returns the context for the call that starts a run, or why the run does not
// start. Without EndWith it is the caller's. With it, neither context cuts the call short:
// a run that the server has started would be known to nobody, and go on.
func (e *EndWith) begins(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if e == nil {
		return ctx, func() {}, nil
	}
	if err := e.over(ctx); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startWithin)
	return ctx, cancel, nil
}

// over returns why no run may begin: one of the contexts is done.
func (e *EndWith) over(ctx context.Context) error {
	if e == nil {
		return nil
	}
	if err := cmp.Or(e.Context.Err(), ctx.Err()); err != nil {
		return fmt.Errorf("start refused: the context that ends the run is done: %w", err)
	}
	return nil
}

// ties are the contexts that end a run through one handle.
type ties struct {
	mu  sync.Mutex
	all []*tie
}

// tie is one context that ends a run.
type tie struct {
	run  *Run
	with EndWith
	id   string      // of the verb: its update, its signal and their repetitions count once
	stop func() bool // takes the tie back; false if it is too late, or has been taken back
	sent chan struct{}
	err  error // why the verb could not be sent; read it after sent is closed
}

// EndWith ends the run with a context, whoever started it. A context that is done already
// ends it now. It returns at once, and begins no goroutine before the context is done. A
// handle may have several contexts: the first that is done ends the run. [Run.Detach]
// takes all of them back, as do [Run.Result] and [Run.Wait] when they return the run's end.
//
// If those two fail, or return a suspension, after the context is done, they first wait
// until the verb is sent, at most 15 s. So a program that exits then does not leave the
// run at work.
//
// The error is [agent.CodeInvalidInput] if the verb can't be sent to any run.
func (r *Run) EndWith(e EndWith) error {
	if err := e.check(); err != nil {
		return err
	}
	t := &tie{run: r, with: e, id: idOr(""), sent: make(chan struct{})}
	r.ties.mu.Lock()
	defer r.ties.mu.Unlock()
	r.ties.all = append(r.ties.all, t)
	t.stop = context.AfterFunc(e.Context, func() {
		defer close(t.sent)
		t.err = t.send()
	})
	return nil
}

// Detach takes back [Run.EndWith] and the options of that name: from now on no context
// ends the run. If one is done already, Detach waits until its verb is sent, at most 15 s.
// The error is why a verb could not be sent; it has the codes of [Client.UpdateOrSignal].
func (r *Run) Detach() error {
	r.ties.mu.Lock()
	all := r.ties.all
	r.ties.all = nil
	r.ties.mu.Unlock()
	var errs []error
	for _, t := range all {
		t.release()
		<-t.sent
		errs = append(errs, t.err)
	}
	return errors.Join(errs...)
}

// settle is called at the end of a wait. A run that has ended needs no verb. Otherwise the
// wait may be over because a context is done, and the program may exit next.
func (r *Run) settle(ended bool) {
	r.ties.mu.Lock()
	all := slices.Clone(r.ties.all)
	r.ties.mu.Unlock()
	for _, t := range all {
		if ended {
			t.release()
		} else if t.with.Context.Err() != nil {
			<-t.sent
		}
	}
}

// release takes a tie back, unless its verb is being sent. Either way sent is closed soon.
func (t *tie) release() {
	if t.stop() {
		close(t.sent)
	}
}

// send sends the verb. It tries again while another try may be taken.
func (t *tie) send() error {
	// With the values of the context that is done, such as a trace, and with a time of its own.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.with.Context), endWithin)
	defer cancel()
	command, err := t.with.command(t.run.ID, t.id)
	for err == nil {
		var ack *agent.Ack
		ack, _, err = t.run.client.UpdateOrSignal(ctx, t.run.Session, command)
		if ack != nil {
			t.run.took(command, *ack, nil)
		}
		if err == nil || t.over(ctx, err) {
			return nil
		}
		if !mayPass(err) {
			break
		}
		select {
		case <-time.After(endAgain):
			if ctx.Err() == nil {
				err = nil
			}
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("ending run %s of session %s with its context: %w", t.run.ID, t.run.Session, err)
}

// gone are the refusals of a run that has ended, and of one whose execution closes while it goes on.
var gone = []agent.Code{agent.CodeClosed, agent.CodeStale, agent.CodeNotFound}

// mayPass reports whether the same verb may be taken in a moment. A verb that counts twice is no
// danger: all tries have one id.
func mayPass(refusal error) bool {
	code := agent.CodeOf(refusal)
	return code.Retryable() || code == agent.CodeNotWritten || slices.Contains(gone, code)
}

// over reports whether a verb was refused because the run has ended, which is what the verb is for.
func (t *tie) over(ctx context.Context, refusal error) bool {
	if !slices.Contains(gone, agent.CodeOf(refusal)) {
		return false
	}
	info, err := t.run.execution(ctx)
	return errors.Is(err, agent.CodeNotFound) || err == nil && durable.Closed(info)
}
