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
	// Session is the one that is told, whatever it waits for: what it refuses is an
	// error then. Empty means every run that waits for the topic, or hears it.
	Session string
	// ID makes an event that is emitted again the same one for every run that has
	// had it; empty means a new one.
	ID string
	// By is who says so: a claim, recorded as one.
	By string
	// Token proves who says so to the session, where a policy binds the verb. It is for one
	// session, and so wants Session.
	Token string
}

// EmitResult says what became of an event.
type EmitResult struct {
	// Accepted counts the runs that took it.
	Accepted int `json:"accepted"`
	// Failed are the runs that wait and could not be told, by session: also daemons
	// that are being stopped, whose next run may be told.
	Failed []EmitFailure `json:"failed,omitempty"`
}

// EmitFailure is a run that could not be told of an event.
type EmitFailure struct {
	Session string       `json:"session"`
	Run     string       `json:"run"`
	Error   *agent.Error `json:"error"`
}

// Emit tells every run that waits for a topic of an event, and every daemon that
// hears it. The payload is anything that is an object, a list or a scalar in JSON;
// nil is none. Runs are found by a listing, which may be behind by a moment: a run
// that has just begun to wait may be missed. One that waits no longer, or for
// another payload, does not count. Errors are [agent.CodeInvalidInput] and
// [agent.CodeTooLarge] before anything is sent, and those of listing; what could not be
// told to one run is in Failed.
//
// With a session, that one is told, and what it refuses is the error: [agent.CodeClosed]
// where its run is at an end, [agent.CodeStale] where it does not wait for such an event
// or is being stopped, [agent.CodeQueueFull] where a daemon has too many. An event that
// was refused has had no effect: emit it again, with the same id.
func (c *Client) Emit(ctx context.Context, topic string, payload any, o *EmitOptions) (EmitResult, error) {
	if o == nil {
		o = &EmitOptions{}
	}
	order := agent.EmitCommand{CommandHeader: agent.CommandHeader{ID: idOr(o.ID), By: o.By, Token: o.Token}, Topic: topic}
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
	e := &emitter{client: c, order: order, slots: make(chan struct{}, atOnce)}
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

// emitter tells many runs of one event, a few at once.
type emitter struct {
	client *Client
	order  agent.EmitCommand
	slots  chan struct{}

	mu   sync.Mutex
	done EmitResult
}

func (e *emitter) all(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for info, err := range e.client.executions(ctx, openRuns+hears(e.order.Topic)) {
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

// hears is the condition that a run waits for a topic, or is a daemon that hears all.
func hears(topic string) string {
	return fmt.Sprintf(" AND (%[1]s = %[2]s OR %[1]s = %[3]s)", agent.AttrWaitsFor, signals.Quote("topic:"+topic), signals.Quote(agent.WaitsForEveryTopic))
}

func (e *emitter) one(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) {
	session, order := info.GetExecution().GetWorkflowId(), e.order
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

// waitsNoMore tells that a run does not wait for the event, or not any more. One that
// would hear it, if it were not being stopped, says that it is worth another try.
func waitsNoMore(err error) bool {
	var e *agent.Error
	if errors.As(err, &e) && e.Retryable {
		return false
	}
	return slices.ContainsFunc([]agent.Code{agent.CodeClosed, agent.CodeStale, agent.CodeNotFound, agent.CodeNotSuspended}, func(c agent.Code) bool { return errors.Is(err, c) })
}
