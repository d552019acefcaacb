package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// A fork of a flow makes again what it is told to, what failed, or what has other arguments, and
// nothing else (OA-52).
func TestAFlowIsForked(t *testing.T) {
	t.Parallel()
	var did counts
	double := tool.New("double", "doubles a number", func(_ context.Context, _ *tool.Call, in struct {
		N int `json:"n"`
	}) (int, error) {
		did.add(fmt.Sprintf("double %d", in.N))
		return 2 * in.N, nil
	}, &tool.Options{Local: true})
	sum := flow.New("sum", func(c flow.Context, in []int) (int, error) {
		all, err := flow.Map(c, "number", in, func(c flow.Context, n int) (int, error) {
			return flow.Tool[int](c, "double", map[string]int{"n": n}, nil)
		}, nil)
		if err != nil {
			return 0, err
		}
		_, err = flow.Do(c, "pay", func(context.Context, *tool.Call) (int, error) { return did.add("pay"), nil }, nil)
		total := 0
		for _, n := range flow.Values(all) {
			total += n
		}
		return total, err
	}, &flow.Options{Tools: []string{"double"}})
	s, _ := flows(t, sum, nil, []tool.Tool{double})
	run, err := s.Start(t.Context(), "sum", "[1,2,3]", nil)
	require.NoError(t, err)
	out := s.rest(t, run)
	require.Equal(t, "12", string(out.Output))
	require.Equal(t, agent.ToolCount{Tool: "pay", Calls: 1, OK: 1}, out.Tools[1], "code of the flow's own counts by its name")

	steps, err := s.Steps(t.Context(), run.Session)
	require.NoError(t, err)
	require.Len(t, steps, 4)
	require.Equal(t, "number.1/double", steps[0].Path)
	require.Equal(t, agent.CallOK, steps[3].Status)
	require.False(t, steps[3].Ended.Before(steps[3].Asked))

	_, err = s.Fork(t.Context(), run.Session, &client.ForkOptions{Redo: []string{"number.9"}})
	require.ErrorIs(t, err, agent.CodeNotFound)
	require.ErrorContains(t, err, "its steps are: number.1/double, ")
	fork := func(o client.ForkOptions) *agent.Outcome {
		o.NewSession = true
		next, err := s.Fork(t.Context(), run.Session, &o)
		require.NoError(t, err)
		if o.Edit {
			require.Equal(t, "pay", next.MayRepeat[len(next.MayRepeat)-1].Step, "the plan says what may be made again")
		}
		forked, err := next.Start(t.Context())
		require.NoError(t, err)
		out := s.rest(t, forked)
		require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
		s.keep(t, "flow-forked", forked.Session, forked.ID)
		return out
	}
	require.Equal(t, "12", string(fork(client.ForkOptions{Redo: []string{"number.2"}}).Output))
	require.Equal(t, map[string]int{"double 1": 1, "double 2": 2, "double 3": 1, "pay": 1}, did.n)
	require.Equal(t, "20", string(fork(client.ForkOptions{Edit: true, Text: "[1,2,7]"}).Output))
	require.Equal(t, map[string]int{"double 1": 1, "double 2": 2, "double 3": 1, "double 7": 1, "pay": 2}, did.n, "code that does not say what it uses is made again")
}

// Before a deploy, the new function runs on what open runs have done: steps that it would leave or
// make again are named.
func TestPreflightTriesFlows(t *testing.T) {
	t.Parallel()
	var did counts
	version := func(fails bool, names ...string) flow.Flow {
		return flow.New("steps", func(c flow.Context, _ string) (string, error) {
			for _, name := range names {
				if name == "ask" {
					if fails {
						return "", errors.New("nobody to ask")
					}
					if _, err := flow.Ask[string](c, "Go on?", nil); err != nil {
						return "", err
					}
				} else if _, err := flow.Do(c, name, func(context.Context, *tool.Call) (int, error) { return did.add(name), nil }, nil); err != nil {
					return "", err
				}
			}
			return "done", nil
		}, nil)
	}
	s, o := flows(t, version(false, "a", "b", "ask", "c"), nil, nil)
	run, err := s.Start(t.Context(), "steps", "go", nil)
	require.NoError(t, err)
	s.suspended(t, run)
	for _, test := range []struct {
		with       flow.Flow
		is         worker.Compatibility
		anew, left []string
		reason     string
	}{
		{with: version(false, "a", "b", "ask", "c", "d"), is: worker.Compatible},
		{with: version(false, "a", "new", "b", "ask"), is: worker.ChangedSteps, anew: []string{"new"}, left: []string{"b", "ask"}, reason: "it leaves b, ask; it asks anew for new"},
		{with: version(false, "a", "b", "b2", "ask"), is: worker.ChangedSteps, anew: []string{"b2"}, left: []string{"ask"}, reason: "it leaves ask; it asks anew for b2"},
		{with: version(true, "a", "b", "ask"), is: worker.ChangedSteps, left: []string{"ask"}, reason: "its flow fails: nobody to ask; it leaves ask"},
	} {
		next := *o
		next.Flows = []flow.Flow{test.with}
		n := 0
		for v, err := range worker.Preflight(t.Context(), s.temporal, &next, nil) {
			require.NoError(t, err)
			require.Equal(t, run.Session, v.Session)
			require.Equal(t, test.is, v.Compatibility, v.Reason)
			require.Equal(t, test.reason, v.Reason)
			if len(test.left)+len(test.anew) > 0 {
				require.Equal(t, worker.StepsDifference{Anew: test.anew, Left: test.left}, *v.Steps)
			}
			n++
		}
		require.Equal(t, 1, n)
	}
	require.Equal(t, map[string]int{"a": 1, "b": 1}, did.n, "no step was made")
}

// What a person has approved, or a step has checked, holds for its run alone: a fork can't use it for
// anything else.
func TestAForkKeepsNoApproval(t *testing.T) {
	t.Parallel()
	var did counts
	pays := flow.New("pays", func(c flow.Context, amount int) (string, error) {
		if _, err := flow.Do(c, "check", func(context.Context, *tool.Call) (int, error) {
			did.add("check")
			if amount > 100 {
				return 0, fmt.Errorf("%d is too much", amount)
			}
			return amount, nil
		}, nil); err != nil {
			return "", err
		}
		if d, err := flow.Approve(c, "Pay?", map[string]int{"amount": amount}, &flow.ApproveOptions{Approvers: []string{"ana"}}); err != nil || !d.Approved {
			return "", errors.Join(err, errors.New("not approved"))
		}
		_, err := flow.Do(c, "pay", func(context.Context, *tool.Call) (int, error) { return did.add("pay"), nil }, nil)
		return "paid", err
	}, nil)
	s, _ := flows(t, pays, nil, nil)
	run, err := s.Start(t.Context(), "pays", "1", nil)
	require.NoError(t, err)
	s.suspended(t, run)
	_, err = run.Cancel(t.Context(), "", nil) // nobody can approve here without ana's token
	require.NoError(t, err)
	require.Equal(t, agent.StatusCancelled, s.rest(t, run).Status)
	for _, o := range []client.ForkOptions{{NewSession: true}, {NewSession: true, Edit: true, Text: "1000000"}} {
		next, err := s.Fork(t.Context(), run.Session, &o)
		require.NoError(t, err)
		fork, err := next.Start(t.Context())
		require.NoError(t, err)
		out := s.rest(t, fork)
		if o.Edit {
			require.Contains(t, out.Error.Message, "1000000 is too much")
			continue
		}
		require.Equal(t, agent.SuspensionInputRequired, out.Suspension.Kind)
		_, err = fork.Cancel(t.Context(), "", nil)
		require.NoError(t, err)
		s.rest(t, fork)
	}
	require.Equal(t, map[string]int{"check": 2}, did.n)
}

// A step that one build has dropped is made by the next one that waits for it.
func TestADroppedStepIsMadeByAnotherBuild(t *testing.T) {
	t.Parallel()
	free := make(chan bool)
	m := modelFunc(func(ctx context.Context, _ *model.Request) *model.Reply {
		select {
		case <-free:
		case <-ctx.Done():
		}
		return saysText("done")
	})
	version := func(withAgent bool) flow.Flow {
		return flow.New("two", func(c flow.Context, _ string) (text string, err error) {
			err = flow.Parallel(c,
				flow.Branch{Name: "agent", Do: func(c flow.Context) (err error) {
					if withAgent {
						text, err = flow.Agent[string](c, "reviewer", "work", nil)
					}
					return err
				}},
				flow.Branch{Name: "asks", Do: func(c flow.Context) error {
					for _, q := range []string{"one", "two"} {
						if _, err := flow.Ask[string](c, q, &flow.AskOptions{Name: q}); err != nil {
							return err
						}
					}
					return nil
				}})
			return text, err
		}, &flow.Options{Agents: []agent.SubAgent{{Agent: "reviewer"}}})
	}
	s, o := flows(t, version(true), m, nil, agent.Definition{Name: "reviewer"})
	run, err := s.Start(t.Context(), "two", "go", nil)
	require.NoError(t, err)
	s.until(t, run, agent.EventRequestOpened)
	s.worker.Stop()
	without := *o
	without.Flows = []flow.Flow{version(false)}
	s.worker = s.open(t, &without)
	s.say(t, run, agent.AnswerCommand{Request: "q-1", Text: "yes"})
	s.suspended(t, run)
	s.worker.Stop()
	s.worker = s.open(t, o)
	close(free)
	s.say(t, run, agent.AnswerCommand{Request: "q-2", Text: "yes"})
	within, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := run.Result(within)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, "done", out.Text)
}

// A retry makes a step of which nobody knows whether it had its effect again with the same key, so that
// who gets the key recognizes it. A step that has failed has a new key.
func TestARetryKeepsTheKeyOfAnUnknownStep(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	keys := map[string][]string{}
	outcomes := map[string][]error{
		"pay":  {tool.Unknown("no answer"), tool.Unknown("no answer again"), nil},
		"mail": {errors.New("refused"), nil, errors.New("refused")},
	}
	does := func(c flow.Context, name string) error {
		_, err := flow.Do(c, name, func(_ context.Context, call *tool.Call) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			keys[name] = append(keys[name], call.Key)
			return 0, outcomes[name][len(keys[name])-1]
		}, &flow.StepOptions{OnUnknown: flow.OnUnknownFail})
		return err
	}
	f := flow.New("retried", func(c flow.Context, _ string) (string, error) {
		return "done", errors.Join(does(c, "mail"), does(c, "pay"))
	}, nil)
	s, _ := flows(t, f, nil, nil)
	run, err := s.Start(t.Context(), "retried", "go", nil)
	require.NoError(t, err)
	out := s.rest(t, run)
	require.Equal(t, agent.CodeStepFailed, out.Error.Code)
	runs := []string{run.ID}
	for range 2 {
		next, err := s.Retry(t.Context(), run.Session, nil)
		require.NoError(t, err)
		again, err := next.Start(t.Context())
		require.NoError(t, err)
		runs = append(runs, again.ID)
		out = s.rest(t, again)
	}
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, map[string][]string{
		"mail": {agent.IdempotencyKey(runs[0], "mail"), agent.IdempotencyKey(runs[1], "mail")},
		"pay":  {agent.IdempotencyKey(runs[0], "pay"), agent.IdempotencyKey(runs[0], "pay"), agent.IdempotencyKey(runs[0], "pay")},
	}, keys)
}
