package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// ScheduleSpec says when a Temporal schedule speaks to a session, and what it says.
// One of Cron and Every is wanted, and one of Text and Topic.
type ScheduleSpec struct {
	// Cron is a cron expression, as Temporal reads it: "0 8 * * MON-FRI", "@daily",
	// "CRON_TZ=Europe/Berlin 0 8 * * *".
	Cron string
	// Every is the time between two ticks, a second at least.
	Every time.Duration
	// Session is spoken to. Agent is whose run begins where it has no live one.
	Session string
	Agent   string
	// Text is said as [Client.Send] does; an event of Topic with Payload is emitted to
	// the session, whose agent is a daemon. Payload is anything that is JSON; nil is
	// none.
	Text    string
	Topic   string
	Payload any
	// By is who says so: a claim, recorded as one. Empty means the schedule's id.
	By string
}

// CreateSchedule makes a Temporal schedule with an id. Each tick is a workflow fermata.tick
// on the client's task queue, and is heard once, however often it is tried; one that
// comes while the one before it still tries is left out. Pausing and triggering one
// are Temporal's own: see `temporal schedule`. Errors are [agent.CodeInvalidInput],
// [agent.CodeBusy] where there is a schedule with the id, and those of reaching the server.
func (c *Client) CreateSchedule(ctx context.Context, id string, s ScheduleSpec) error {
	spec, tick, err := s.resolve(id)
	if err != nil {
		return durable.Within("schedule refused", err)
	}
	made, err := c.temporal.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: id, Spec: spec, Memo: map[string]any{agent.MemoKey: s.memo(tick)},
		Action: &client.ScheduleWorkflowAction{ID: id, Workflow: signals.TickType, Args: []any{tick}, TaskQueue: c.taskQueue},
	})
	var wrong *serviceerror.InvalidArgument
	switch {
	case errors.Is(err, temporal.ErrScheduleAlreadyRunning):
		return agent.Errorf(agent.CodeBusy, "there is a schedule %s already; delete it first, or name another", id)
	case errors.As(err, &wrong):
		return agent.Errorf(agent.CodeInvalidInput, "schedule refused: %w", err)
	case err != nil:
		return fmt.Errorf("making schedule %s: %w", id, durable.FromRPC(err))
	}
	return c.comes(ctx, made, s)
}

// comes takes a schedule back that the server knows no time for, such as the 30th of
// February. If the server does not say, the schedule stands.
func (c *Client) comes(ctx context.Context, made client.ScheduleHandle, s ScheduleSpec) error {
	if s.Cron == "" {
		return nil
	}
	d, err := made.Describe(ctx)
	if err != nil || len(d.Info.NextActionTimes) > 0 || d.Info.NumActions > 0 {
		return nil
	}
	if err := made.Delete(ctx); err != nil {
		return fmt.Errorf("deleting schedule %s, for which no time comes: %w", made.GetID(), durable.FromRPC(err))
	}
	return agent.Errorf(agent.CodeInvalidInput, "schedule refused: no time comes that %q means", s.Cron).WithPath("cron")
}

func (s ScheduleSpec) resolve(id string) (spec client.ScheduleSpec, t agent.Tick, err error) {
	if strings.TrimSpace(id) == "" {
		return spec, t, agent.Errorf(agent.CodeInvalidInput, "the schedule has no id").WithPath("id")
	}
	if (s.Cron == "") == (s.Every == 0) {
		return spec, t, agent.Errorf(agent.CodeInvalidInput, "set exactly one of cron and every").WithPath("cron")
	}
	if s.Cron != "" {
		spec.CronExpressions = []string{s.Cron}
	} else if s.Every < time.Second {
		return spec, t, agent.Errorf(agent.CodeInvalidInput, "every is %s; at least a second is taken", s.Every).WithPath("every")
	} else {
		spec.Intervals = []client.ScheduleIntervalSpec{{Every: s.Every}}
	}
	t = agent.Tick{V: agent.Version, Session: s.Session, Agent: s.Agent, Text: s.Text, Topic: s.Topic, By: s.By}
	if t.By == "" {
		t.By = "schedule " + id
	}
	if s.Payload != nil {
		if t.Payload, err = json.Marshal(s.Payload); err != nil {
			return spec, t, agent.Errorf(agent.CodeInvalidInput, "payload is not JSON: %w", err).WithPath("payload")
		}
	}
	return spec, t, signals.CheckTick(t)
}

// ScheduleInfo is a schedule as the server lists it.
type ScheduleInfo struct {
	ID      string `json:"id"`
	Session string `json:"session"`
	Agent   string `json:"agent"`
	// Text is the beginning of what it says; Topic is set where that is an event.
	Text  string         `json:"text,omitempty"`
	Topic string         `json:"topic,omitempty"`
	Cron  string         `json:"cron,omitempty"`
	Every agent.Duration `json:"every,omitempty"`
	// Next is the time of its next tick; zero if none is to come.
	Next   time.Time `json:"next,omitzero"`
	Paused bool      `json:"paused,omitempty"`
}

// memo is what a listing shows of a schedule.
func (s ScheduleSpec) memo(t agent.Tick) ScheduleInfo {
	return ScheduleInfo{Session: t.Session, Agent: t.Agent, Text: agent.Input{Text: t.Text}.Task(), Topic: t.Topic, Cron: s.Cron, Every: agent.Duration(s.Every)}
}

// ListSchedules yields the schedules of the namespace that speak to sessions, whatever
// their task queue. Of one that was not made by [Client.CreateSchedule] only the id, the
// next time and whether it is paused are known. A listing may be behind by a moment.
func (c *Client) ListSchedules(ctx context.Context) iter.Seq2[ScheduleInfo, error] {
	return func(yield func(ScheduleInfo, error) bool) {
		list, err := c.temporal.ScheduleClient().List(ctx, client.ScheduleListOptions{})
		if err != nil {
			yield(ScheduleInfo{}, fmt.Errorf("listing schedules: %w", durable.FromRPC(err)))
			return
		}
		for list.HasNext() {
			e, err := list.Next()
			if err != nil {
				yield(ScheduleInfo{}, fmt.Errorf("listing schedules: %w", durable.FromRPC(err)))
				return
			}
			if e.WorkflowType.Name == signals.TickType && !yield(scheduled(e), nil) {
				return
			}
		}
	}
}

func scheduled(e *client.ScheduleListEntry) ScheduleInfo {
	var s ScheduleInfo
	if p, ok := e.Memo.GetFields()[agent.MemoKey]; ok {
		_ = converter.GetDefaultDataConverter().FromPayload(p, &s) // one that was made by hand has none
	}
	s.ID, s.Paused = e.ID, e.Paused
	if len(e.NextActionTimes) > 0 {
		s.Next = e.NextActionTimes[0].UTC()
	}
	return s
}

// DeleteSchedule deletes a schedule; what it has said stays said. [agent.CodeNotFound] tells
// that there is none.
func (c *Client) DeleteSchedule(ctx context.Context, id string) error {
	err := durable.FromRPC(c.temporal.ScheduleClient().GetHandle(ctx, id).Delete(ctx))
	switch {
	case errors.Is(err, agent.CodeNotFound):
		return agent.Errorf(agent.CodeNotFound, "there is no schedule %s", id)
	case err != nil:
		return fmt.Errorf("deleting schedule %s: %w", id, err)
	}
	return nil
}
