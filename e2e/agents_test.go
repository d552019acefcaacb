package e2e

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/agents"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// ownStage is a stage with workflows of the user's own on a Temporal worker of their own.
type ownStage struct {
	*stage
	options *worker.Options // of Fermata's worker
	fermata *worker.Worker
	own     []any // the workflows
}

// ownOn makes such a stage on another. The agents' model is a function.
func ownOn(t *testing.T, s *stage, m modelFunc, tools []tool.Tool, defs []agent.Definition, own ...any) *ownStage {
	t.Helper()
	for i := range defs {
		defs[i].Model = "script"
	}
	h := &ownStage{stage: s, own: own, options: &worker.Options{
		TaskQueue: s.queue, Agents: defs, Tools: tools, Store: s.store, Logger: zap.NewNop(), Models: map[string]model.Model{"script": m}, Temporal: stopsSoon,
	}}
	h.fermata = s.open(t, h.options)
	w := sdk.New(s.temporal, h.queueOfOwn(), sdk.Options{})
	for _, wf := range own {
		w.RegisterWorkflow(wf)
	}
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return h
}

func newOwn(t *testing.T, m modelFunc, tools []tool.Tool, defs []agent.Definition, own ...any) *ownStage {
	t.Helper()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	return ownOn(t, s, m, tools, defs, own...)
}

func (h *ownStage) queueOfOwn() string { return h.queue + "-own" }

// order starts a workflow of the user's own; its id is "order-" and the queue.
func (h *ownStage) order(t *testing.T, wf any, args ...any) temporal.WorkflowRun {
	t.Helper()
	run, err := h.temporal.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{ID: "order-" + h.queue, TaskQueue: h.queueOfOwn()}, wf, args...)
	require.NoError(t, err)
	return run
}

// started waits until a session has a run, and returns it.
func (h *ownStage) started(t *testing.T, session string) *client.Run {
	t.Helper()
	var run *client.Run
	require.Eventually(t, func() bool {
		var err error
		run, err = h.Get(t.Context(), session)
		return err == nil
	}, patience, 10*time.Millisecond)
	return run
}

// replays replays the history of a workflow of the user's own.
func (h *ownStage) replays(t *testing.T, of temporal.WorkflowRun) {
	t.Helper()
	r := sdk.NewWorkflowReplayer()
	for _, wf := range h.own {
		r.RegisterWorkflow(wf)
	}
	require.NoError(t, r.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), &historypb.History{Events: h.history(t, of.GetID(), of.GetRunID())}))
}

// verdict is what a reviewer answers.
type verdict struct {
	Fine bool `json:"fine"`
}

// errand is what the workflows of these tests get.
type errand struct {
	Queue   string
	Session string
}

func (o errand) options() *agents.Options {
	return &agents.Options{TaskQueue: o.Queue, Session: o.Session}
}

// A workflow of the user's own gets an agent's answer by its type, and a failure by its code. A
// replay of the workflow comes to the same.
func TestAWorkflowRunsAgents(t *testing.T) {
	t.Parallel()
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		switch r.Messages[0].Text() {
		case `{"item":"tea"}`:
			return saysText(`{"fine":true}`)
		case "hello":
			return saysText("good day")
		}
		return callsTool("look", `{}`)
	})
	look := tool.New("look", "looks", func(context.Context, *tool.Call, struct{}) (string, error) { return "dust", nil }, nil)
	type said struct {
		Fine             bool
		Text             string
		Limited, Busy    bool
		Unknown, Foreign bool
		Closed           bool
		Sessions         []string
		Code             agent.Code
	}
	wf := func(ctx workflow.Context, o errand) (out said, err error) {
		v, err := agents.Execute[verdict](ctx, "reviewer", map[string]string{"item": "tea"}, o.options())
		if err != nil {
			return out, err
		}
		out.Fine = v.Fine
		a, b := agents.Start[string](ctx, "reviewer", "hello", o.options()), agents.Start[string](ctx, "reviewer", "look around", o.options())
		out.Sessions = []string{a.Session, b.Session}
		if out.Text, err = a.Result(ctx); err != nil {
			return out, err
		}
		_, err = b.Result(ctx)
		var failed *agents.RunError
		out.Limited = errors.Is(err, agent.CodeLimitTurns) && errors.As(err, &failed) && failed.Session == b.Session && failed.Outcome.Turns == 2
		out.Code = agent.CodeOf(err)
		_, err = agents.Execute[string](ctx, "nobody", "hello", o.options())
		out.Unknown = errors.Is(err, agent.CodeUnknownAgent)
		_, err = agents.Execute[int](ctx, "reviewer", "hello", o.options())
		out.Foreign = errors.Is(err, agent.CodeIncompatible)
		same := &agents.Options{TaskQueue: o.Queue, Session: "same-" + o.Queue}
		agents.Start[string](ctx, "reviewer", "hello", same)
		_, err = agents.Execute[string](ctx, "reviewer", "hello", same)
		out.Busy = errors.Is(err, agent.CodeBusy)
		out.Closed = errors.Is(b.Send(ctx, agent.PauseCommand{}), agent.CodeClosed)
		return out, nil
	}
	h := newOwn(t, m, []tool.Tool{look}, []agent.Definition{{Name: "reviewer", Tools: []string{"look"}, Limits: agent.Limits{Turns: 2}}}, wf)
	run := h.order(t, wf, errand{Queue: h.queue})
	var out said
	require.NoError(t, run.Get(t.Context(), &out))
	require.Len(t, out.Sessions, 2)
	require.NotEqual(t, out.Sessions[0], out.Sessions[1])
	for _, session := range out.Sessions {
		require.Regexp(t, "^order-TestAWorkflowRunsAgents-.*-reviewer-[a-z2-7]{8}$", session)
		ended, err := h.Get(t.Context(), session)
		require.NoError(t, err)
		_, err = ended.Result(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, said{Fine: true, Text: "good day", Limited: true, Busy: true, Unknown: true, Foreign: true, Closed: true, Code: agent.CodeLimitTurns, Sessions: out.Sessions}, out)
	h.replays(t, run)
}

// A workflow that returns an agent's error fails with its code, and with the run's failure as its
// cause.
func TestAWorkflowFailsWithAnAgent(t *testing.T) {
	t.Parallel()
	wf := func(ctx workflow.Context, o errand) (string, error) {
		return agents.Execute[string](ctx, "nobody", "hello", o.options())
	}
	h := newOwn(t, nil, nil, []agent.Definition{{Name: "somebody"}}, wf)
	run := h.order(t, wf, errand{Queue: h.queue})
	err := run.Get(t.Context(), nil)
	require.Equal(t, agent.CodeUnknownAgent, agent.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "nobody")
	h.replays(t, run)
}

// Workflows and activities of the user's own run on Fermata's worker too. They get their signals.
func TestAWorkflowOnFermatasWorker(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	s.open(t, &worker.Options{
		TaskQueue: s.queue, Agents: []agent.Definition{{Name: "greeter", Model: "script"}}, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon,
		Models: map[string]model.Model{"script": modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
			return saysText("hello, " + r.Messages[0].Text())
		})},
		Register: func(r sdk.Registry) {
			r.RegisterActivityWithOptions(func(_ context.Context, text string) (string, error) { return text + "!", nil }, activity.RegisterOptions{Name: "shout"})
			r.RegisterWorkflowWithOptions(func(ctx workflow.Context) (text string, err error) {
				var name string
				workflow.GetSignalChannel(ctx, "name").Receive(ctx, &name)
				if text, err = agents.Execute[string](ctx, "greeter", name, &agents.Options{TaskQueue: workflow.GetInfo(ctx).TaskQueueName}); err != nil {
					return "", err
				}
				ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
				err = workflow.ExecuteActivity(ctx, "shout", text).Get(ctx, &text)
				return text, err
			}, workflow.RegisterOptions{Name: "greet"})
		},
	})
	run, err := s.temporal.SignalWithStartWorkflow(t.Context(), "greet-"+s.queue, "name", "ana", temporal.StartWorkflowOptions{TaskQueue: s.queue}, "greet")
	require.NoError(t, err)
	var text string
	require.NoError(t, run.Get(t.Context(), &text))
	require.Equal(t, "hello, ana!", text)
}
