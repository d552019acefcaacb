package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/console"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/signals"
)

// held reports whether this person holds the run, and nobody has removed that hold.
func (v *conversation) held() bool { return v.holding && v.resumes == v.followed.Resumes }

// pressInterrupt handles Ctrl-C: the first holds the run, the second leaves it held.
func (v *conversation) pressInterrupt(ctx context.Context) error {
	if v.held() {
		return v.leaveHeld()
	}
	// Set before the answer comes: events of the hold may arrive first.
	v.holding, v.resumes, v.after = true, v.followed.Resumes, 0
	v.to.Note("interrupting; Ctrl-C again leaves the run held")
	type ackResult struct {
		later bool
		err   error
	}
	// One id for the update and the signal, so the run applies the interrupt once.
	order := agent.InterruptCommand{CommandHeader: agent.CommandHeader{ID: uuid.NewString(), Run: v.run.ID, By: env.User()}, Reason: "Ctrl-C"}
	// Room for one: after a second Ctrl-C nobody receives, and the goroutine must end.
	done := make(chan ackResult, 1)
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, later, err := v.runs.UpdateOrSignal(sending, v.run.Session, order)
		done <- ackResult{later, err}
	}()
	select {
	// An accepted interrupt is no hold yet: the event of the hold follows.
	case s := <-done:
		switch {
		case s.later:
			v.to.Note("no worker answers: the interrupt waits for one")
		case errors.Is(s.err, agent.CodeClosed): // it has ended since; the next event says how
			v.holding = false
		case s.err != nil:
			v.holding = false
			v.failed(ctx, s.err)
		}
		return nil
	// The person does not wait for a worker. A signal stays with the server until one comes.
	case <-v.pressed:
		return v.signalInterrupt(ctx, order)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// signalInterrupt sends an interrupt that no worker has answered yet as a signal.
func (v *conversation) signalInterrupt(ctx context.Context, order agent.InterruptCommand) error {
	// Bounded, since the person is leaving.
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	err := signals.Signal(ctx, v.server.Client, v.run.Session, order)
	if errors.Is(err, agent.CodeClosed) {
		v.Note("left; the run has ended: see %s", v.CommandLine("show %s", v.run.Session))
		return exitInterrupted
	}
	if err != nil {
		return fmt.Errorf("left; it is unknown whether the run is held: %w", err)
	}
	return v.leaveHeld()
}

// leaveHeld leaves a run that Ctrl-C holds.
func (v *conversation) leaveHeld() error {
	v.leave()
	return exitInterrupted
}

const holdMenu = `held. What next?
  TEXT  continue, with this message
  r     resume
  s     stop, with a handoff
  l     leave it held
`

// choose asks what comes next for a held run. Only an explicit choice stops the run.
func (v *conversation) choose(ctx context.Context) error {
	v.to.Break()
	v.console.Print("%s", untrusted.Block(strings.TrimSpace(holdMenu)))
	for {
		line, err := v.console.Line(ctx, "> ")
		switch {
		case errors.Is(err, console.ErrInterrupted):
			return v.leaveHeld()
		case err != nil:
			return err
		}
		switch err = v.chosen(ctx, line); {
		case errors.Is(err, errDetached):
			return err
		case errors.Is(err, errUnchosen):
			v.console.Print("type r, s, l, or a message")
		// Already ended or resumed by somebody else: the hold is gone either way.
		case err == nil, errors.Is(err, agent.CodeClosed), errors.Is(err, agent.CodeNotSuspended):
			v.holding, v.after, v.rest = false, 0, ""
			clear(v.passed)
			return nil // the next event shows the run's state
		default:
			// The hold is still there, so ask again.
			v.failed(ctx, err)
		}
	}
}

// errUnchosen means that what was typed is no choice.
var errUnchosen = errors.New("no choice")

// chosen does what was chosen.
func (v *conversation) chosen(ctx context.Context, line string) error {
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	var err error
	switch word := strings.ToLower(line); {
	case word == "l" || word == "leave":
		return errDetached
	case word == "s" || word == "stop":
		_, err = v.run.Stop(ctx, "Ctrl-C", &fermata.StopOptions{By: env.User()})
	case word == "r" || word == "resume":
		_, err = v.run.Resume(ctx, &fermata.ResumeOptions{By: env.User()})
	// A single letter is more likely a mistake than a message.
	case len(line) < 2:
		return errUnchosen
	default:
		_, err = v.run.Resume(ctx, &fermata.ResumeOptions{Message: line, By: env.User()})
	}
	return v.noAnswer(v.run.Session, err)
}
