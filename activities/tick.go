package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/signals"
)

// Tick sends a message to a session, or an event, for a schedule's workflow. If no run is
// live it begins the session's next run. A repeated attempt has the same id and is taken
// once.
var Tick = durable.Activity[agent.Tick, TickResult]{Name: "fermata.tick"}

// TickResult names the run that took the message or event.
type TickResult struct {
	Session string `json:"session"`
	Run     string `json:"run"`
}

func (d *Activities) tick(ctx context.Context, t agent.Tick) (TickResult, error) {
	info := activity.GetInfo(ctx)
	id := tickID(info.WorkflowExecution.ID + "/" + info.WorkflowExecution.RunID)
	start := agent.Start{V: agent.Version, Agent: t.Agent, By: t.By}
	if t.Topic == "" { // a run that this tick begins has the message from the start, under the same id
		start.Input, start.ID = agent.Input{Text: t.Text}, id
	}
	var err error
	// The new run names the run before it: it is refused if the store has lost the
	// session.
	if start.After, err = d.lastRun(ctx, t.Session); err != nil {
		return TickResult{}, durable.Within("tick", err)
	}
	options := signals.StartOptions(t.Session, StoreLane.runs(info.TaskQueue), start, time.Now())
	ack, err := signals.UpdateWithStart(ctx, d.Client, options, start, signals.TickCommand(t, id))
	// The run ended before it could answer, and may have taken the message anyway.
	if err == nil && ack.Effect == agent.EffectRunEnded {
		ack.Run, err = d.endedDuringTick(ctx, t.Session, id, ack)
	}
	if err != nil {
		e := durable.Within("tick", err)
		e.Retryable = e.Retryable || tickLater(err)
		return TickResult{}, e
	}
	return TickResult{Session: t.Session, Run: ack.Run}, nil
}

// lastRun returns the session's last run; empty if Temporal knows of none.
func (d *Activities) lastRun(ctx context.Context, session string) (string, error) {
	last, err := d.Client.DescribeWorkflowExecution(ctx, session, "")
	if errors.As(err, new(*serviceerror.NotFound)) {
		return "", nil
	}
	return last.GetWorkflowExecutionInfo().GetFirstRunId(), durable.FromRPC(err)
}

// tickLater reports whether a later attempt may succeed: a later run may take it, or the
// same run once its backlog has room. A message that is too large by itself was refused
// before.
func tickLater(err error) bool {
	return slices.ContainsFunc([]agent.Code{agent.CodeClosed, agent.CodeStale, agent.CodeTooLarge}, func(c agent.Code) bool { return errors.Is(err, c) })
}

// endedDuringTick finds out what became of a tick whose run ended. If the head has a
// receipt for the id, a run has taken it. A run that wrote nothing to the log failed for
// what it was started with; its error is returned, since the next run would fail the same
// way.
func (d *Activities) endedDuringTick(ctx context.Context, session, id string, ack agent.Ack) (run string, err error) {
	ended := durable.FromTemporal(d.Client.GetWorkflow(ctx, session, ack.Run).Get(ctx, nil))
	head, err := d.Log.Head(ctx, session)
	if err != nil && !errors.Is(err, agent.CodeNotFound) {
		return "", err
	}
	if i := slices.IndexFunc(head.Receipts, func(p remembered.Receipt) bool { return p.ID == id }); i >= 0 {
		return head.Receipts[i].Run, nil
	}
	if ended != nil && !errors.Is(ended, durable.ErrCancelled) && head.Run != ack.Run {
		return "", ended
	}
	return "", agent.Errorf(agent.CodeClosed, "the run of session %s came to its end first (%s)", session, ack.Status)
}

// tickID returns the id of a tick's message. It has a fixed length, however long the
// schedule's name is.
func tickID(execution string) string {
	sum := sha256.Sum256([]byte(execution))
	return "tick-" + hex.EncodeToString(sum[:16])
}
