package main

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/await"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/console"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/follow"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// conversation is between a person at the terminal and a run.
type conversation struct {
	*runner
	to      speaker
	console *console.Console
	pressed <-chan struct{} // Ctrl-C
	typed   <-chan struct{} // a line that nobody asked for; nil if such lines are dropped
	help    string          // where to learn what to send to a suspended run

	holding bool            // Ctrl-C was pressed, and the person has not chosen what comes next
	resumes int             // how often the run's own hold had been removed then
	passed  map[string]bool // requests that are left to others
	rest    string          // the suspension that was shown last
	after   int64           // a suspension at which there is nothing to ask
	found   []agent.Request // requests of sub-agents
}

// speaker is a listener that a question can interrupt.
type speaker interface {
	follow.Listener
	// Break ends an unfinished line.
	Break()
}

// errDetached means that the person leaves, and everything is shown.
var errDetached = errors.New("left")

// converse shows the run to its end. It asks the person what the run asks. Ctrl-C holds
// the run until the person says what comes next.
func (r *runner) converse(ctx context.Context) error {
	pressed, giveBack := r.keys.Take()
	defer giveBack()
	v := &conversation{runner: r, to: r.newPrinter(), console: r.console(), pressed: pressed, passed: map[string]bool{}, help: "Ctrl-C asks what to do"}
	v.console.SetInterrupt(pressed)
	for {
		o, err := v.step(ctx)
		switch {
		case err != nil:
			return v.left(ctx, err)
		case o != nil:
			return r.printEnd(ctx, r.runs, o, v.to)
		}
	}
}

// step follows the run to the next thing that the person must handle, and handles it. It
// returns the Outcome if the run has ended, else nil.
func (v *conversation) step(ctx context.Context) (*agent.Outcome, error) {
	o, err := v.next(ctx, v.to, v.until)
	switch {
	case errors.Is(err, console.ErrInterrupted):
		err = v.pressInterrupt(ctx)
	case errors.Is(err, follow.ErrAsked):
		open, _ := requestsInFull(ctx, v.runs, v.found)
		err = v.ask(ctx, open)
	case errors.Is(err, follow.ErrChanged):
		v.after, err = 0, nil
	case err == nil && o.Status != agent.StatusSuspended:
		return o, nil
	case err == nil:
		err = v.handleSuspended(ctx, o)
	}
	if errors.Is(err, console.ErrInterrupted) {
		err = v.pressInterrupt(ctx) // pressed instead of an answer
	}
	return nil, err
}

// until says when to stop following.
func (v *conversation) until() follow.Until {
	// Copied: Below runs in a goroutine, and may outlive this run.
	runs, session := v.runs, v.run.Session
	return follow.Until{
		Rest: v.after == 0, After: v.after, Pressed: v.pressed, Typed: v.typed,
		Below: func(ctx context.Context) []agent.Request { return below(ctx, runs, session) },
		Fresh: func(list []agent.Request) bool { v.found = v.fresh(list); return len(v.found) > 0 },
	}
}

// fresh leaves out requests that are left to others.
func (v *conversation) fresh(list []agent.Request) []agent.Request {
	return slices.DeleteFunc(slices.Clone(list), func(q agent.Request) bool { return v.passed[q.Session+" "+q.ID] })
}

// handleSuspended handles a suspended run: it asks its requests, or what to do with the
// person's own hold.
func (v *conversation) handleSuspended(ctx context.Context, o *agent.Outcome) error {
	if v.held() && slices.ContainsFunc(o.Suspension.Holds, func(h agent.Hold) bool { return h.From == agent.HoldOwn }) {
		return v.choose(ctx)
	}
	if open := v.fresh(o.Suspension.Requests); len(open) > 0 && o.Seq > 0 {
		return v.ask(ctx, open)
	}
	if rest := render.Waits(o.Suspension); rest != v.rest {
		v.rest = rest
		v.to.Note("%s %s; %s", o.Session, rest, v.help)
	}
	switch {
	// Only a listing knows of the suspension so far. Ask the run itself again.
	case o.Seq == 0:
		await.Pause(ctx, follow.LookAgain)
	case o.Seq >= v.heard.Seq:
		v.after = o.Seq
	}
	return ctx.Err()
}

// ask asks requests and sends the answers.
func (v *conversation) ask(ctx context.Context, open []agent.Request) error {
	v.after = 0
	for _, q := range open {
		v.to.Break()
		if len(q.Approvers) > 0 {
			v.pass(q, "takes a decision of its approvers only")
			continue
		}
		still, done := v.whileOpen(ctx, q)
		a, err := v.console.Ask(still, q)
		done()
		switch {
		case err != nil && errors.Is(context.Cause(still), errAnsweredElsewhere):
			continue // the next event says by whom
		case errors.Is(err, console.ErrLater):
			v.pass(q, "stays open")
			continue
		case errors.Is(err, io.EOF):
			v.pass(q, "stays open")
			return err
		case err != nil:
			return err
		}
		if _, err := v.decide(ctx, v.runs, q, decision{AnswerTo: a, by: env.User()}); err != nil {
			v.failed(ctx, err) // somebody else may have answered
		}
	}
	return nil
}

// errAnsweredElsewhere means that somebody else answered first.
var errAnsweredElsewhere = errors.New("it was answered elsewhere")

// whileOpen returns a context that ends when a request is no longer open.
func (v *conversation) whileOpen(ctx context.Context, q agent.Request) (open context.Context, done func()) {
	open, end := context.WithCancelCause(ctx)
	go func() {
		for await.Pause(open, follow.LookAgain) {
			if _, err := v.runs.Request(open, q.Session, q.ID); errors.Is(err, agent.CodeNotFound) || errors.Is(err, agent.CodeClosed) {
				end(errAnsweredElsewhere)
			}
		}
	}()
	return open, func() { end(nil) }
}

// pass leaves a request to others, and says how to answer it.
func (v *conversation) pass(q agent.Request, why string) {
	v.passed[q.Session+" "+q.ID] = true
	v.to.Note("%s %s:", render.Asks(q), why)
	for _, line := range v.answers(q) {
		v.to.Note("  %s", line)
	}
}

// failed shows an error after which the conversation continues.
func (v *conversation) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	for _, f := range render.Faults(err) {
		v.to.Note("[%s] %s", f.Code, untrusted.Line(f.Message, 400))
	}
}

// left says how the run continues without this command, and returns the exit status.
func (v *conversation) left(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		v.leaving("interrupted", "the run")
		return exitInterrupted
	case errors.Is(err, io.EOF), errors.Is(err, errDetached):
		v.leave()
		return exitSuspended
	}
	return err
}

// leave says how a held or waiting run continues.
func (v *conversation) leave() { v.leaving("left", "it") }

func (v *conversation) leaving(why, what string) {
	if v.held() {
		v.Note("%s; the run stays held: %s lets it go on", why, v.CommandLine("resume %s", v.run.Session))
		return
	}
	v.Note("%s; %s", why, v.continuesText(what))
}
