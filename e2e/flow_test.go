package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// flows is a stage whose workers have a flow, and agents whose model is a function.
func flows(t *testing.T, f flow.Flow, m modelFunc, tools []tool.Tool, agents ...agent.Definition) (*stage, *worker.Options) {
	t.Helper()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	for i := range agents {
		agents[i].Model = "script"
	}
	o := &worker.Options{
		TaskQueue: s.queue, Flows: []flow.Flow{f}, Agents: agents, Tools: tools, Store: s.store, Logger: zap.NewNop(),
		Models: map[string]model.Model{"script": m}, Temporal: stopsSoon,
	}
	s.worker = s.open(t, o)
	return s, o
}

// counts counts what was done, by name.
type counts struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counts) add(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name]++
	return c.n[name]
}

// Five reviewers review at once; one of them asks a person. The tree is interrupted while the
// others work, and resumed: they go on without the one that asks, and nothing is done twice.
func TestAFlowOfAgentsIsHeld(t *testing.T) {
	t.Parallel()
	var looked counts
	working := make(chan string, 20)
	look := tool.New("look", "looks", func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		if looked.add("look") <= 4 { // cut off, and made again
			working <- c.Session
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "fine", nil
	}, &tool.Options{Attempts: 3})
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		last := lastSaid(r)
		switch {
		case strings.Contains(r.Messages[0].Text(), "file 3") && len(r.Messages) == 1:
			return callsTool("ask_user", `{"question":"Is this meant?"}`)
		case last.Role == agent.RoleUser:
			return callsTool("look", `{}`)
		}
		return saysText("looked")
	})
	review := flow.New("review", func(c flow.Context, n int) (string, error) {
		files := make([]int, n)
		found, err := flow.Map(c, "file", files, func(c flow.Context, _ int) (string, error) {
			return flow.Agent[string](c, "reviewer", fmt.Sprintf("Review file %d", branchNumber(c)), nil)
		}, nil)
		if err != nil {
			return "", err
		}
		return strings.Join(flow.Values(found), " "), nil
	}, &flow.Options{Agents: []agent.SubAgent{{Agent: "reviewer"}}})
	s, _ := flows(t, review, m, []tool.Tool{look}, agent.Definition{Name: "reviewer", Tools: []string{"look", agent.AskUserTool}})

	run, err := s.Start(t.Context(), "review", "5", nil)
	require.NoError(t, err)
	for range 4 {
		<-working
	}
	s.say(t, run, agent.InterruptCommand{})
	require.Equal(t, agent.SuspensionHeld, s.suspended(t, run).Kind)
	s.say(t, run, agent.ResumeCommand{})
	require.Equal(t, agent.SuspensionAwaitingChildren, s.suspended(t, run).Kind, "four have ended, one asks")
	nodes, err := run.Tree(t.Context())
	require.NoError(t, err)
	i := slices.IndexFunc(nodes, func(n agent.Node) bool { return n.Suspension != nil && n.Parent != "" })
	require.Positive(t, i)
	_, err = signals.Update(t.Context(), s.temporal, nodes[i].Session, agent.AnswerCommand{Request: "q-1", Text: "yes"})
	require.NoError(t, err)
	// The root hears of the answer from the child: until then it is suspended.
	within, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := run.Result(within)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, "looked looked looked looked looked", out.Text)
	s.keep(t, "flow-held", run.Session, run.ID)
}

// branchNumber returns the number of the branch, from its path: the test has nothing else to tell
// branches apart.
func branchNumber(c flow.Context) int {
	var n int
	_, _ = fmt.Sscanf(flow.Path(c), "file.%d", &n)
	return n
}

// A request of one branch is open at once, while another branch works: the run is not suspended.
// The answer lets that branch go on before the other has ended.
func TestAFlowAsksWhileItWorks(t *testing.T) {
	t.Parallel()
	free := make(chan bool)
	slow := tool.New("slow", "waits", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
		select {
		case <-free:
		case <-ctx.Done():
		}
		return "at last", ctx.Err()
	}, nil)
	var told sync.Map
	both := flow.New("both", func(c flow.Context, _ string) (string, error) {
		var a, b string
		err := flow.Parallel(c,
			flow.Branch{Name: "slow", Do: func(c flow.Context) (err error) {
				a, err = flow.Tool[string](c, "slow", struct{}{}, nil)
				return err
			}},
			flow.Branch{Name: "asks", Do: func(c flow.Context) (err error) {
				if b, err = flow.Ask[string](c, "Which?", nil); err != nil {
					return err
				}
				_, err = flow.Do(c, "tell", func(context.Context, *tool.Call) (bool, error) { told.Store(b, true); return true, nil }, nil)
				return err
			}})
		return a + ", " + b, err
	}, &flow.Options{Tools: []string{"slow"}})
	s, _ := flows(t, both, nil, []tool.Tool{slow})
	run, err := s.Start(t.Context(), "both", "go", nil)
	require.NoError(t, err)
	s.until(t, run, agent.EventRequestOpened)
	status, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusRunning, status.Status)
	require.Len(t, status.Requests, 1)
	require.Equal(t, "branch.asks/ask", status.Requests[0].Step)
	for q, err := range s.Requests(t.Context(), run.Session) {
		require.NoError(t, err)
		require.Equal(t, "branch.asks/ask", q.Step, "programs get it while the run works")
		break
	}
	s.say(t, run, agent.AnswerCommand{Request: status.Requests[0].ID, Text: "blue"})
	require.Eventually(t, func() bool { _, ok := told.Load("blue"); return ok }, patience, 10*time.Millisecond, "the branch goes on")
	close(free)
	require.Equal(t, "at last, blue", s.rest(t, run).Text)
	s.keep(t, "flow-asks", run.Session, run.ID)
}

// A flow goes on with another worker, and with another version of its function: what is done is
// not done again, steps that were added are done, and removed ones are forgotten.
func TestAFlowGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	var did counts
	step := func(c flow.Context, name string) error {
		_, err := flow.Do(c, name, func(context.Context, *tool.Call) (int, error) { return did.add(name), nil }, nil)
		return err
	}
	version := func(names ...string) flow.Flow {
		return flow.New("steps", func(c flow.Context, _ string) (string, error) {
			for _, name := range names {
				if name == "ask" {
					if _, err := flow.Ask[string](c, "Go on?", nil); err != nil {
						return "", err
					}
				} else if err := step(c, name); err != nil {
					return "", err
				}
			}
			return strings.Join(names, " "), nil
		}, nil)
	}
	s, o := flows(t, version("a", "b", "ask", "c"), nil, nil)
	run, err := s.Start(t.Context(), "steps", "go", nil)
	require.NoError(t, err)
	s.suspended(t, run)
	s.worker.Stop()
	first := *o
	first.Flows = []flow.Flow{version("a", "new", "ask", "c", "d")}
	s.open(t, &first)
	s.say(t, run, agent.AnswerCommand{Request: "q-1", Text: "yes"})
	out := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, 1, did.n["a"])
	require.Equal(t, 1, did.n["b"])
	require.Equal(t, 1, did.n["c"])
}

// A long flow continues as new, with children at work and requests open. Every step is done once.
func TestALongFlow(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const steps = 2500
	var did counts
	count := tool.New("count", "counts", func(_ context.Context, _ *tool.Call, in struct {
		N int `json:"n"`
	}) (int, error) {
		did.add(fmt.Sprint(in.N))
		return in.N, nil
	}, &tool.Options{Local: true})
	free := make(chan bool)
	m := modelFunc(func(ctx context.Context, _ *model.Request) *model.Reply {
		select {
		case <-free:
		case <-ctx.Done():
		}
		return saysText("done")
	})
	long := flow.New("long", func(c flow.Context, _ string) (int, error) {
		sum := 0
		err := flow.Parallel(c,
			flow.Branch{Name: "agent", Do: func(c flow.Context) error {
				_, err := flow.Agent[string](c, "worker", "work", nil)
				return err
			}},
			flow.Branch{Name: "asks", Do: func(c flow.Context) error {
				_, err := flow.Ask[string](c, "Which?", nil)
				return err
			}},
			flow.Branch{Name: "counts", Do: func(c flow.Context) error {
				for i := range steps {
					n, err := flow.Tool[int](c, "count", map[string]int{"n": i}, nil)
					if err != nil {
						return err
					}
					sum += n
				}
				return nil
			}})
		return sum, err
	}, &flow.Options{Tools: []string{"count"}, Agents: []agent.SubAgent{{Agent: "worker"}}})
	s, _ := flows(t, long, m, []tool.Tool{count}, agent.Definition{Name: "worker"})
	run, err := s.Start(t.Context(), "long", "go", nil)
	require.NoError(t, err)
	if !assert.Eventually(t, func() bool { return did.len() == steps }, 3*time.Minute, 50*time.Millisecond) {
		st, err := run.Status(t.Context())
		out, _ := run.Result(t.Context())
		t.Fatalf("%d steps: %+v %v %+v", did.len(), st.Status, err, out.Error)
	}
	require.NotEqual(t, run.ID, s.current(t, run.Session), "it has continued as new")
	close(free)
	require.Equal(t, agent.SuspensionInputRequired, s.suspended(t, run).Kind, "the agent's end was reported")
	s.say(t, run, agent.AnswerCommand{Request: "q-1", Text: "so"})
	out := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, fmt.Sprint(steps*(steps-1)/2), string(out.Output))
	for name, n := range did.n {
		require.Equal(t, 1, n, "step %s", name)
	}
}

func (c *counts) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.n)
}

func callsTool(name, arguments string) *model.Reply {
	return &model.Reply{Finish: agent.FinishToolCalls, Parts: []agent.Part{{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: name, Arguments: json.RawMessage(arguments)}}}}
}

// The handoff of a flow that asked while it worked is a briefing for the next run, as it is.
func TestAFlowsHandoffIsABriefing(t *testing.T) {
	t.Parallel()
	slow := tool.New("slow", "waits", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}, nil)
	both := flow.New("both", func(c flow.Context, _ string) (string, error) {
		return "", flow.Parallel(c,
			flow.Branch{Name: "asks", Do: func(c flow.Context) error { _, err := flow.Ask[string](c, "Which?", nil); return err }},
			flow.Branch{Name: "works", Do: func(c flow.Context) error { _, err := flow.Tool[string](c, "slow", struct{}{}, nil); return err }})
	}, &flow.Options{Tools: []string{"slow"}})
	s, _ := flows(t, both, nil, []tool.Tool{slow})
	run, err := s.Start(t.Context(), "both", "go", nil)
	require.NoError(t, err)
	s.until(t, run, agent.EventRequestOpened)
	s.say(t, run, agent.StopCommand{})
	out := s.rest(t, run)
	require.Len(t, out.Handoff.Requests, 1)
	next, err := s.Start(t.Context(), "both", "go on", &client.StartOptions{Briefing: out.Handoff})
	require.NoError(t, err)
	s.until(t, next, agent.EventRequestOpened)
	_, err = next.Cancel(t.Context(), "", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCancelled, s.rest(t, next).Status)
}
