package e2e

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// A flow calls a model without a run of its own: a reply that does not fit is asked for again, an
// interrupt cuts it off and a resume repeats it, and all attempts count against the limits.
func TestAFlowCallsAModel(t *testing.T) {
	t.Parallel()
	type plan struct {
		Steps []string `json:"steps"`
	}
	var calls atomic.Int64
	asked := make(chan string, 10)
	m := modelFunc(func(ctx context.Context, r *model.Request) *model.Reply {
		reply := saysText(`{"steps":["a","b"]}`)
		reply.Usage = agent.Usage{Input: 10, Output: 1}
		switch n := calls.Add(1); {
		case n == 1:
			reply.Parts[0].Text = "no JSON"
		case n == 2:
			asked <- r.Instructions + "/" + r.Messages[0].Text()
			<-ctx.Done() // the interrupt
		}
		return reply
	})
	f := flow.New("plans", func(c flow.Context, in string) (string, error) {
		p, err := flow.Generate[plan](c, "plan", flow.Prompt{Instructions: "Plan.", Text: in})
		if err != nil {
			return "", err
		}
		return flow.Generate[string](c, "write", flow.Prompt{Model: "other/model", Text: p.Steps[1]})
	}, &flow.Options{Models: []string{"script/one"}})
	s, _ := flows(t, f, m, nil)
	run, err := s.Start(t.Context(), "plans", "a trip", nil)
	require.NoError(t, err)
	require.Equal(t, "Plan./a trip", <-asked)
	s.say(t, run, agent.InterruptCommand{})
	require.Equal(t, agent.SuspensionHeld, s.suspended(t, run).Kind)
	s.say(t, run, agent.ResumeCommand{})
	out := s.rest(t, run)
	require.Equal(t, agent.StatusFailed, out.Status)
	require.Equal(t, agent.CodeUnknownModel, out.Error.Code)
	require.Equal(t, "write", out.Error.Path)
	require.Contains(t, out.Error.Message, `step write (generate): rejected: the model "other/model" is not among the flow's Options.Models: script/one`)
	require.EqualValues(t, 3, calls.Load())
	s.keep(t, "flow-generates", run.Session, run.ID)
	require.GreaterOrEqual(t, out.Usage.Input, int64(20), "the reply that did not fit was paid, too")
}

// What a flow's calls of models use counts against its limits.
func TestAFlowsModelCallsAreLimited(t *testing.T) {
	t.Parallel()
	m := modelFunc(func(context.Context, *model.Request) *model.Reply {
		reply := saysText("once more")
		reply.Usage = agent.Usage{Input: 400, Output: 100}
		return reply
	})
	f := flow.New("loops", func(c flow.Context, _ string) (string, error) {
		for {
			if _, err := flow.Generate[string](c, "", flow.Prompt{Text: "and?"}); err != nil {
				return "", err
			}
		}
	}, &flow.Options{Models: []string{"script/one"}, Limits: agent.Limits{Tokens: 2000}})
	s, _ := flows(t, f, m, nil)
	run, err := s.Start(t.Context(), "loops", "go", nil)
	require.NoError(t, err)
	out := s.rest(t, run)
	require.Equal(t, agent.StatusFailed, out.Status)
	require.Equal(t, agent.CodeLimitTokens, out.Error.Code)
	require.EqualValues(t, 2000, out.Usage.Total())
}

// Five models are asked at once, and the first reply ends the flow. The other four were paid, too: an
// estimate of their prompts counts, with its cost.
func TestAFlowIsChargedForARace(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	begun, over := make(chan bool, 4), make(chan bool)
	defer close(over)
	m := modelFunc(func(context.Context, *model.Request) *model.Reply {
		reply := saysText("yes")
		reply.Usage = agent.Usage{Input: 400, Output: 100}
		if calls.Add(1) < 5 {
			begun <- true
			<-over // it ignores that it is cancelled
			return reply
		}
		for range 4 {
			<-begun
		}
		return reply
	})
	f := flow.New("races", func(c flow.Context, _ string) (string, error) {
		_, err := flow.Map(c, "m", make([]int, 5), func(c flow.Context, _ int) (string, error) {
			return flow.Generate[string](c, "g", flow.Prompt{Text: "and?"})
		}, &flow.MapOptions{Need: 1})
		return "", err
	}, &flow.Options{Models: []string{"script/one"}, Limits: agent.Limits{CostUSD: agent.Dollar}})
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	s.worker = s.open(t, &worker.Options{
		TaskQueue: s.queue, Flows: []flow.Flow{f}, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon,
		Models: map[string]model.Model{"script": model.WithInfo(m, "one", model.Info{Price: agent.Price{Input: 2 * agent.Dollar, Output: 5 * agent.Dollar}})},
	})
	run, err := s.Start(t.Context(), "races", "go", nil)
	require.NoError(t, err)
	out := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, out.Status)
	require.EqualValues(t, 500+4*5, out.Usage.Total())
	require.EqualValues(t, 400*2+100*5+4*10, out.Cost)
	require.Equal(t, agent.Estimate{Tokens: 4 * 5, Cost: 4 * 10}, out.Tree.Estimated)
}

// A call of a model that is interrupted before the model says anything is charged by its prompt,
// and not by all that the flow's steps have returned.
func TestAnInterruptedCallIsChargedByItsPrompt(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	asked := make(chan bool, 1)
	m := modelFunc(func(ctx context.Context, _ *model.Request) *model.Reply {
		reply := saysText("yes")
		reply.Usage = agent.Usage{Input: 10, Output: 1}
		if calls.Add(1) == 1 {
			asked <- true
			<-ctx.Done()
		}
		return reply
	})
	f := flow.New("estimates", func(c flow.Context, _ string) (string, error) {
		for range 20 {
			if _, err := flow.Do(c, "read", func(context.Context, *tool.Call) (string, error) { return strings.Repeat("x", 100_000), nil }, nil); err != nil {
				return "", err
			}
		}
		return flow.Generate[string](c, "judge", flow.Prompt{Text: "and?"})
	}, &flow.Options{Models: []string{"script/one"}, Limits: agent.Limits{Tokens: 100_000}})
	s, _ := flows(t, f, m, nil)
	run, err := s.Start(t.Context(), "estimates", "go", nil)
	require.NoError(t, err)
	<-asked
	s.say(t, run, agent.InterruptCommand{})
	s.suspended(t, run)
	s.say(t, run, agent.ResumeCommand{})
	out := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Less(t, out.Usage.Total(), int64(1000))
}
