package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// EmitOptions are optional; nil means all defaults.
type EmitOptions struct {
	// Session is the only session that gets the event. Its refusal is then Emit's error.
	// Empty means every run that waits for the topic, and every daemon that takes it.
	Session string
	// Run is the only run of the session that gets the event: another live one refuses it with
	// [agent.CodeStale]. Empty means whichever is live. It needs Session.
	Run string
	// TaskQueue is the task queue whose runs get the event; empty means all. With Session it has no
	// meaning.
	TaskQueue string
	// ID identifies the event, so that a repeated event counts once for each run; empty
	// means a new id.
	ID string
	// By says who emits. It is logged, and not authenticated.
	By string
	// Token proves who emits, if a policy binds the verb. A token is for one session, so
	// Session is required with it.
	Token string
}

// EmitResult says who got an event.
type EmitResult struct {
	// Accepted counts the runs that accepted it.
	Accepted int `json:"accepted"`
	// Failed are the runs that wait for the event but could not be reached, ordered by
	// session. Daemons that are being stopped are among them: their next run may accept
	// it.
	Failed []EmitFailure `json:"failed,omitempty"`
}

// EmitFailure is a run that did not get an event.
type EmitFailure struct {
	Session string       `json:"session"`
	Run     string       `json:"run"`
	Error   *agent.Error `json:"error"`
}

// Emit delivers an event to every run that waits for its topic, and to every daemon that
// takes it. The payload is any value that encodes to JSON; nil means none. Emit finds the
// runs by a listing, which may be behind by a moment. So it may miss a run that has just
// begun to wait. Runs that do not wait any more, or wait for another payload, do not
// count.
//
// With [EmitOptions.Session], only that session gets the event, and its refusal is the
// error. [agent.CodeClosed] means that its run has ended, [agent.CodeStale] that it does
// not wait for such an event or is being stopped, and [agent.CodeQueueFull] that a daemon
// has too many. A refused event had no effect: emit it again with the same id.
//
// Without it, a run that could not be reached is in Failed. Errors are then
// [agent.CodeInvalidInput] and [agent.CodeTooLarge] before anything is sent, and those of
// the listing.
func (c *Client) Emit(ctx context.Context, topic string, payload any, o *EmitOptions) (EmitResult, error) {
	if o == nil {
		o = &EmitOptions{}
	}
	order := agent.EmitCommand{CommandHeader: agent.CommandHeader{ID: idOr(o.ID), By: o.By, Run: o.Run, Token: o.Token}, Topic: topic}
	if o.Run != "" && o.Session == "" {
		return EmitResult{}, agent.Errorf(agent.CodeInvalidInput, "emit refused: a run is one of a session; name the session too").WithPath("run")
	}
	if o.Token != "" && o.Session == "" {
		return EmitResult{}, agent.Errorf(agent.CodeInvalidInput, "emit refused: a token is for one session; name it").WithPath("token")
	}
	if payload != nil {
		raw, err := json.Marshal(payload)
		if err != nil {
			return EmitResult{}, agent.Errorf(agent.CodeInvalidInput, "emit refused: payload is not JSON: %w", err).WithPath("payload")
		}
		order.Payload = raw
	}
	if _, err := checkCommand(order); err != nil {
		return EmitResult{}, err
	}
	if o.Session != "" {
		return c.emitTo(ctx, o.Session, order)
	}
	e := &emitter{client: c, order: order, taskQueue: o.TaskQueue, slots: make(chan struct{}, atOnce)}
	err := e.all(ctx)
	slices.SortFunc(e.done.Failed, func(a, b EmitFailure) int { return cmp.Compare(a.Session, b.Session) })
	return e.done, err
}

func (c *Client) emitTo(ctx context.Context, session string, order agent.EmitCommand) (EmitResult, error) {
	ack, err := c.update(ctx, session, order)
	if err == nil && ack.Effect == agent.EffectRunEnded {
		err = tooLate(session, order, ack)
	}
	if err != nil {
		return EmitResult{}, err
	}
	return EmitResult{Accepted: 1}, nil
}

// emitter delivers one event to many runs, a few at a time.
type emitter struct {
	client    *Client
	order     agent.EmitCommand
	taskQueue string
	slots     chan struct{}

	mu   sync.Mutex
	done EmitResult
}

func (e *emitter) all(ctx context.Context) error {
	var running sync.WaitGroup
	// Also after an error: done is read only when no goroutine writes it any more.
	defer running.Wait()
	for info, err := range e.client.executions(ctx, openRuns+waitsForTopic(e.order.Topic)+ofTaskQueue(e.taskQueue)) {
		if err != nil {
			return fmt.Errorf("listing the runs that wait for %s: %w", e.order.Topic, err)
		}
		e.slots <- struct{}{}
		running.Go(func() {
			defer func() { <-e.slots }()
			e.one(ctx, info)
		})
	}
	return nil
}

// waitsForTopic returns the condition that a run waits for a topic, or is a daemon that takes all
// topics.
func waitsForTopic(topic string) string {
	return fmt.Sprintf(" AND (%[1]s = %[2]s OR %[1]s = %[3]s)", agent.AttrWaitsFor, signals.Quote("topic:"+topic), signals.Quote(agent.WaitsForEveryTopic))
}

func (e *emitter) one(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) {
	session, order := info.GetExecution().GetWorkflowId(), e.order
	// A later run of the session must not get an event that its predecessor waited for.
	order.Run = runOf(info)
	ack, err := e.client.update(ctx, session, order)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil && ack.Effect == agent.EffectRunEnded, waitsNoMore(err):
	case err == nil:
		e.done.Accepted++
	default:
		e.done.Failed = append(e.done.Failed, EmitFailure{session, order.Run, durable.Within("emitting "+e.order.Topic, err)})
	}
}

// waitsNoMore reports whether a run does not wait for the event. A daemon that is being
// stopped returns a retryable error instead, since its next run may accept the event.
func waitsNoMore(err error) bool {
	var e *agent.Error
	if errors.As(err, &e) && e.Retryable {
		return false
	}
	return slices.ContainsFunc([]agent.Code{agent.CodeClosed, agent.CodeStale, agent.CodeNotFound, agent.CodeNotSuspended}, func(c agent.Code) bool { return errors.Is(err, c) })
}
