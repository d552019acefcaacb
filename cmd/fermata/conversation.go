package main

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
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
	// readFiles returns an answer as it is sent, and the files that it names; nil if answers name none.
	readFiles func(text string) (said string, files []fermata.FileInput, err error)

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

// errDetached means that the person leaves and that everything is already shown.
var errDetached = errors.New("left")

// converse shows the run to its end. It asks the person what the run asks. Ctrl-C holds
// the run until the person says what comes next.
func (r *runner) converse(ctx context.Context) error {
	// Taken before the first step: a Ctrl-C in between would end the command instead of holding the
	// run.
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
		// The run continues until it handles the interrupt, so following continues.
		err = v.pressInterrupt(ctx)
	case errors.Is(err, follow.ErrAsked):
		// A run that does not answer is left out; the next listing has its request again.
		open, _ := requestsInFull(ctx, v.runs, v.found)
		err = v.ask(ctx, open)
	case errors.Is(err, follow.ErrChanged):
		// Something happened elsewhere, so the suspension may have other requests now.
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
	// The run may wait for others as well, but the person's own hold comes first: nothing runs
	// before it is removed.
	if v.held() && slices.ContainsFunc(o.Suspension.Holds, func(h agent.Hold) bool { return h.From == agent.HoldOwn }) {
		return v.choose(ctx)
	}
	// Without a position (Seq 0) only a listing knows of it; the requests may be old.
	if open := v.fresh(o.Suspension.Requests); len(open) > 0 && o.Seq > 0 {
		return v.ask(ctx, open)
	}
	if rest := render.Waits(o.Suspension); rest != v.rest {
		// Shown once for each suspension: following returns here again and again.
		v.rest = rest
		v.to.Note("%s %s; %s", o.Session, rest, v.help)
	}
	switch {
	// Only a listing knows of the suspension so far. Ask the run itself again.
	case o.Seq == 0:
		await.Pause(ctx, follow.LookAgain)
	// An older outcome must not move the position back.
	case o.Seq >= v.followed.Seq:
		v.after = o.Seq
	}
	return ctx.Err()
}

// ask asks requests and sends the answers.
func (v *conversation) ask(ctx context.Context, open []agent.Request) error {
	v.after = 0
	for _, q := range open {
		// A question must start on its own line.
		v.to.Break()
		// This person has no token here, so the run would refuse the answer.
		if len(q.Approvers) > 0 {
			v.pass(q, "takes a decision of its approvers only")
			continue
		}
		// Somebody may answer in another terminal while this person still types.
		still, done := v.whileOpen(ctx, q)
		a, err := v.console.Ask(still, q)
		done()
		switch {
		// Before the other errors: the cancelled wait also returns an error of the console.
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
		d := decision{AnswerTo: a, by: env.User()}
		if v.readFiles != nil && a.Answer != nil {
			a.Answer.Text, d.files, err = v.readFiles(a.Answer.Text)
		}
		if err == nil {
			_, err = v.decide(ctx, v.runs, q, d)
		}
		if err != nil {
			v.failed(ctx, err) // somebody else may have answered
			continue
		}
		v.noteShown(d.files)
	}
	return nil
}

// errAnsweredElsewhere means that somebody else answered first.
var errAnsweredElsewhere = errors.New("it was answered elsewhere")

// whileOpen returns a context that ends when a request is no longer open.
func (v *conversation) whileOpen(ctx context.Context, q agent.Request) (open context.Context, done func()) {
	// The cause tells an answer from elsewhere and the end of the command apart.
	open, end := context.WithCancelCause(ctx)
	go func() {
		for await.Pause(open, follow.LookAgain) {
			if _, err := v.runs.Request(open, q.Session, q.ID); errors.Is(err, agent.CodeNotFound) || errors.Is(err, agent.CodeClosed) {
				end(errAnsweredElsewhere)
			}
		}
	}()
	// Without end the goroutine would ask until the command ends.
	return open, func() { end(nil) }
}

// pass leaves a request to others, and says how to answer it.
func (v *conversation) pass(q agent.Request, why string) {
	// Ids of requests are unique only within their session.
	v.passed[q.Session+" "+q.ID] = true
	v.to.Note("%s %s:", render.Asks(q), why)
	for _, line := range v.answers(q) {
		v.to.Note("  %s", line)
	}
}

// failed shows an error after which the conversation continues.
func (v *conversation) failed(ctx context.Context, err error) {
	// The command ends, so the error is only about that.
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
		// SIGTERM ends the command at once; a hold stays where it is.
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
		first := ""
		if v.server.InProcess() {
			first = "start " + v.devLine() + ", and "
		}
		v.Note("%s; the run stays held: %scontinue it with %s", why, first, v.CommandLine("resume %s", v.run.Session))
		return
	}
	v.Note("%s; %s", why, v.continuesText(what))
}
