package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// Tick does what a schedule's workflow is for: it says something in a session, or
// emits an event to it, and begins the session's next run where none is live. A
// later attempt says the same.
var Tick = durable.Activity[agent.Tick, TickResult]{Name: "fermata.tick"}

// TickResult is the run that has what was said.
type TickResult struct {
	Session string `json:"session"`
	Run     string `json:"run"`
}

func (d *Deeds) tick(ctx context.Context, t agent.Tick) (out TickResult, err error) {
	info := activity.GetInfo(ctx)
	order := agent.Order{ID: tickID(info.WorkflowExecution.ID + "/" + info.WorkflowExecution.RunID), By: t.By}
	out.Session = t.Session
	if t.Topic != "" {
		out.Run, err = d.tickEvent(ctx, t, order, info.TaskQueue)
	} else {
		out.Run, err = d.tickText(ctx, t, order, info.TaskQueue)
	}
	return out, err
}

// tickID names what a tick says: as long as an id may be, whatever the schedule is called.
func tickID(execution string) string {
	sum := sha256.Sum256([]byte(execution))
	return "tick-" + hex.EncodeToString(sum[:16])
}

// tickText says a text: to the live run, or as the input of the next.
func (d *Deeds) tickText(ctx context.Context, t agent.Tick, o agent.Order, queue string) (string, error) {
	start := agent.Start{V: agent.Version, Agent: t.Agent, Input: agent.Input{Text: t.Text}, By: t.By, ID: o.ID}
	run, err := d.Client.SignalWithStartWorkflow(ctx, t.Session, string(agent.Send), agent.SendOrder{Order: o, Text: t.Text},
		signals.StartOptions(t.Session, queue, start, time.Now()), signals.WorkflowType, start)
	if err != nil {
		return "", durable.ArriveRPC(err)
	}
	return run.GetRunID(), nil
}

// tickEvent emits an event, to a daemon that is begun where it is not live.
func (d *Deeds) tickEvent(ctx context.Context, t agent.Tick, o agent.Order, queue string) (string, error) {
	start := agent.Start{V: agent.Version, Agent: t.Agent, By: t.By}
	options := signals.StartOptions(t.Session, queue, start, time.Now())
	ack, err := signals.SayOrStart(ctx, d.Client, options, start, agent.EmitOrder{Order: o, Topic: t.Topic, Payload: t.Payload})
	if err == nil && ack.Effect == agent.Moot {
		err = agent.Errorf(agent.Closed, "the run of session %s came to its end first (%s)", t.Session, ack.Status)
	}
	if errors.Is(err, agent.Closed) || errors.Is(err, agent.Stale) { // the next run may take it
		e := durable.Within("tick", err)
		e.Retryable = true
		return "", e
	}
	return ack.Run, err
}
