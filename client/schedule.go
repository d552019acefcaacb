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

// ScheduleSpec says when a Temporal schedule reaches a session, and with what. One of
// Cron and Every is required, and one of Text and Topic.
type ScheduleSpec struct {
	// Cron is a cron expression in Temporal's form: "0 8 * * MON-FRI", "@daily",
	// "CRON_TZ=Europe/Berlin 0 8 * * *".
	Cron string
	// Every is the time between two ticks, at least one second.
	Every time.Duration
	// Session gets the message or the event. If it has no live run, a run of Agent
	// begins.
	Session string
	Agent   string
	// Text is sent as a message, as by [Client.Send]. Or an event of Topic with Payload
	// is emitted to the session, whose agent has to be a daemon. Payload is any value
	// that encodes to JSON; nil means none.
	Text    string
	Topic   string
	Payload any
	// By says who sends it. It is logged, and not authenticated. Empty means the
	// schedule's id.
	By string
}

// CreateSchedule creates a Temporal schedule. Each tick is a workflow fermata.tick on the
// client's task queue. A tick counts once, however often it is retried. If the tick
// before is still being retried, the next one is skipped. Pause or trigger a schedule
// with `temporal schedule`.
//
// Errors are [agent.CodeInvalidInput], [agent.CodeBusy] if a schedule has the id already,
// and those of reaching the server.
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

// comes deletes a new schedule whose time never comes, such as the 30th of February. The
// server accepts such a schedule. If the server does not answer, the schedule stays.
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

// ScheduleInfo is a schedule in a listing.
type ScheduleInfo struct {
	ID      string `json:"id"`
	Session string `json:"session"`
	Agent   string `json:"agent"`
	// Text is the beginning of its message. Topic is set if it emits an event.
	Text  string         `json:"text,omitempty"`
	Topic string         `json:"topic,omitempty"`
	Cron  string         `json:"cron,omitempty"`
	Every agent.Duration `json:"every,omitempty"`
	// Next is the time of its next tick; zero if there is none.
	Next   time.Time `json:"next,omitzero"`
	Paused bool      `json:"paused,omitempty"`
}

// memo returns what a listing shows of a schedule.
func (s ScheduleSpec) memo(t agent.Tick) ScheduleInfo {
	return ScheduleInfo{Session: t.Session, Agent: t.Agent, Text: agent.Input{Text: t.Text}.Task(), Topic: t.Topic, Cron: s.Cron, Every: agent.Duration(s.Every)}
}

// ListSchedules yields the namespace's schedules that reach sessions, on any task queue.
// If [Client.CreateSchedule] did not create a schedule, only its id, next time and pause
// are known. A listing may be behind by a moment.
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
			// The workflow type tells ours: the namespace may have other schedules too.
			if e.WorkflowType.Name == signals.TickType && !yield(scheduled(e), nil) {
				return
			}
		}
	}
}

func scheduled(e *client.ScheduleListEntry) ScheduleInfo {
	var s ScheduleInfo
	if p, ok := e.Memo.GetFields()[agent.MemoKey]; ok {
		_ = converter.GetDefaultDataConverter().FromPayload(p, &s) // a schedule that was made by hand has no memo of ours
	}
	s.ID, s.Paused = e.ID, e.Paused
	if len(e.NextActionTimes) > 0 {
		s.Next = e.NextActionTimes[0].UTC()
	}
	return s
}

// DeleteSchedule deletes a schedule. Messages that it has sent stay. If there is no such
// schedule, the error is [agent.CodeNotFound].
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
