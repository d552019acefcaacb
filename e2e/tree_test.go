package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// forest is a stage whose agents n0, n1, … give work to one another: a run of
// n0 becomes a tree, every node of which runs a tool while its children work,
// and every leaf of which waits for its model.
type forest struct {
	*stage
	script *testsuite.Script
	busy   atomic.Int64 // tools that run
	agents []agent.Definition
	tool   tool.Tool
	first  *worker.Worker
}

func plant(t *testing.T, fanout ...int) *forest {
	t.Helper()
	f := &forest{}
	hold := tool.New("hold", "works until it is stopped", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
		f.busy.Add(1)
		defer f.busy.Add(-1)
		<-ctx.Done()
		return "half", nil
	}, nil)
	f.tool = hold
	for i := range len(fanout) + 1 {
		def := agent.Definition{Name: fmt.Sprintf("n%d", i), Model: "script", Tools: []string{"hold"}}
		if i < len(fanout) {
			def.Agents = []agent.SubAgent{{Agent: fmt.Sprintf("n%d", i+1)}}
		}
		f.agents = append(f.agents, def)
	}
	f.script = testsuite.NewScript(treeRules(fanout)...)
	f.stage = setup(t, agent.Definition{}, testsuite.NewScript())
	f.queue += "-forest" // its workers have other agents
	f.Client = client.New(f.temporal, &client.Options{TaskQueue: f.queue, Store: f.dir})
	f.first = f.tend(t)
	return f
}

// treeRules make the node of level n give work to level n+1, and the leaves think. A third
// leaf of level 2 ends at once, and a fourth runs the tool.
func treeRules(fanout []int) (rules []testsuite.Reply) {
	rules = append(rules, testsuite.Reply{Match: beingStopped, Text: "{}"})
	for level, n := range fanout {
		r := testsuite.Reply{Match: fmt.Sprintf(`(?m)\Alevel %d$`, level), Calls: call("hold", map[string]any{})}
		for i := range n {
			r.Calls = append(r.Calls, testsuite.Call{Tool: fmt.Sprintf("subagent__n%d", level+1), Arguments: map[string]any{"task": fmt.Sprintf("level %d", level+1), "context": fmt.Sprintf("part %d", i)}})
		}
		rules = append(rules, r)
	}
	return append(rules, testsuite.Reply{Match: `\Alevel 2\n[\s\S]*part 2`, Text: "I have it"},
		testsuite.Reply{Match: `\Alevel 2\n[\s\S]*part 3`, Calls: call("hold", map[string]any{})},
		testsuite.Reply{Match: fmt.Sprintf(`\Alevel %d`, len(fanout)), Text: "I think", Delay: time.Minute},
		testsuite.Reply{Match: ".*", Text: "done"})
}

// beingStopped is in what a model is asked when its run stops.
const beingStopped = "You are being stopped"

// mindful is a script that sums up, when its run stops, what the run's own tool has returned.
type mindful struct{ *testsuite.Script }

func (m mindful) Generate(ctx context.Context, r *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	reply, err := m.Script.Generate(ctx, r, emit)
	if err != nil || !strings.Contains(r.Messages[len(r.Messages)-1].Text(), beingStopped) {
		return reply, err
	}
	had := "nothing"
	for _, said := range r.Messages {
		for _, p := range said.Parts {
			if p.Result != nil && p.Result.Tool == "hold" {
				had = p.Result.Text
			}
		}
	}
	reply.Parts[0].Text = fmt.Sprintf(`{"summary":"I had %s"}`, had)
	return reply, nil
}

// tend starts a worker of the forest.
func (f *forest) tend(t *testing.T) *worker.Worker {
	t.Helper()
	return f.tendOver(t, nil)
}

// tendOver starts a worker that tells others of holds over h; nil means over Temporal.
func (f *forest) tendOver(t *testing.T, h live.Holds) *worker.Worker {
	t.Helper()
	w, err := worker.New(f.temporal, &worker.Options{
		TaskQueue: f.queue, Agents: f.agents, Tools: []tool.Tool{f.tool}, Store: f.dir, Logger: zap.NewNop(),
		Models: map[string]model.Model{"script": mindful{f.script}}, Temporal: stopsSoon, Holds: h,
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	return w
}

// grown starts a run and waits until every node of its tree works.
func (f *forest) grown(t *testing.T, nodes, tools int) *client.Run {
	t.Helper()
	run, err := f.Start(t.Context(), "n0", "level 0", nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return int(f.busy.Load()) == tools && f.asked(nodes) }, patience, 5*time.Millisecond)
	return run
}

// asked reports whether the model was asked so often.
func (f *forest) asked(n int) bool { return len(f.script.Requests()) >= n }

// still waits until every node of a run's tree has a status.
func (f *forest) still(t *testing.T, run *client.Run, nodes int, want agent.Status) {
	t.Helper()
	require.Eventually(t, func() bool {
		tree, err := run.Tree(t.Context())
		if err != nil || len(tree) != nodes {
			return false
		}
		for _, n := range tree {
			if n.Status != want {
				return false
			}
		}
		return true
	}, patience, 20*time.Millisecond)
}

// An interrupt of the root stops all that runs below it, at any depth; resumed, all
// goes on, and nothing that was done is done again (HX-76, HX-81).
func TestInterruptATree(t *testing.T) {
	t.Parallel()
	f := plant(t, 2, 2)
	run := f.grown(t, 7, 3)
	_, err := run.Interrupt(t.Context(), "the client rings", nil)
	require.NoError(t, err)
	require.Equal(t, agent.SuspensionHeld, f.suspended(t, run).Kind)
	f.still(t, run, 7, agent.StatusSuspended)
	require.Zero(t, f.busy.Load())
	_, err = run.Resume(t.Context(), nil)
	require.NoError(t, err)
	o := f.rest(t, run)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, []agent.ToolCount{{Tool: "hold", Calls: 1, OK: 1}, {Tool: "subagent__n1", Calls: 2, OK: 2}}, o.Tools)
	f.still(t, run, 7, agent.StatusCompleted)
}

// The same with two workers that share nothing but the server: what the other one
// has in flight is stopped as well.
func TestInterruptATreeOverTwoWorkers(t *testing.T) {
	t.Parallel()
	f := plant(t, 2, 2)
	f.tend(t)
	run := f.grown(t, 7, 3)
	_, err := run.Interrupt(t.Context(), "", nil)
	require.NoError(t, err)
	f.suspended(t, run)
	f.still(t, run, 7, agent.StatusSuspended)
	require.Zero(t, f.busy.Load())
	_, err = run.Resume(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, f.rest(t, run).Status)
}

// A stop gives every agent its chance to sum up, and folds them in order: what a tool returned when it
// was cut off reaches its model, and is in the handoff of those above. A leaf that has ended before
// stays as it ended, and is folded in with what it found (HL-56, HX-80, HA-140).
func TestStopATree(t *testing.T) {
	t.Parallel()
	f := plant(t, 2, 4)
	run := f.grown(t, 11, 5)
	want, says := map[string]agent.Status{"": agent.StatusStopped}, map[string]string{"": "I had half"}
	for _, n := range []string{"/n1-1", "/n1-2"} {
		want[n], want[n+"/n2-1"], want[n+"/n2-2"], want[n+"/n2-3"], want[n+"/n2-4"] = agent.StatusStopped, agent.StatusStopped, agent.StatusStopped, agent.StatusCompleted, agent.StatusStopped
		says[n], says[n+"/n2-1"], says[n+"/n2-2"], says[n+"/n2-3"], says[n+"/n2-4"] = "I had half", "I had nothing", "I had nothing", "I have it", "I had half"
		leaf, err := f.Get(t.Context(), run.Session+n+"/n2-3")
		require.NoError(t, err)
		require.Equal(t, agent.StatusCompleted, f.rest(t, leaf).Status)
	}
	_, err := run.Stop(t.Context(), "budget meeting", &client.StopOptions{Deadline: 12 * time.Second})
	require.NoError(t, err)
	o := f.rest(t, run)
	require.Equal(t, agent.StatusStopped, o.Status, "%+v", o.Error)
	var agents []string
	for h := range o.Handoff.All() {
		name := h.Session[len(run.Session):]
		agents = append(agents, name)
		require.Equal(t, want[name], h.Status, name)
		require.Equal(t, says[name], h.Summary, name)
	}
	require.Equal(t, []string{
		"", "/n1-1", "/n1-1/n2-1", "/n1-1/n2-2", "/n1-1/n2-3", "/n1-1/n2-4", "/n1-2", "/n1-2/n2-1", "/n1-2/n2-2", "/n1-2/n2-3", "/n1-2/n2-4",
	}, agents)
	require.Eventually(t, func() bool {
		tree, err := run.Tree(t.Context())
		if err != nil || len(tree) != len(want) {
			return false
		}
		for _, n := range tree {
			if n.Status != want[n.Session[len(run.Session):]] {
				return false
			}
		}
		return true
	}, patience, 20*time.Millisecond)
}

// A tree whose root is cancelled, or terminated by somebody, ends as a whole
// (HL-52).
func TestNoChildOutlivesItsParent(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*forest, *client.Run) error{
		"cancel": func(f *forest, run *client.Run) error { _, err := run.Cancel(t.Context(), "", nil); return err },
		"terminate": func(f *forest, run *client.Run) error {
			return f.temporal.TerminateWorkflow(t.Context(), run.Session, "", "because")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := plant(t, 2, 1)
			run := f.grown(t, 5, 3)
			require.NoError(t, end(f, run))
			f.still(t, run, 5, agent.StatusCancelled)
			require.Eventually(t, func() bool { return f.busy.Load() == 0 }, patience, 5*time.Millisecond)
			require.Len(t, f.script.Requests(), 5, "no model was asked after the end")
		})
	}
}

// The ceilings of a tree bound the provider's own tools too: a request of an agent below says which of
// them it may not use (HA-97).
func TestCeilingsOfATreeBoundTheToolsOfTheProvider(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	denied := map[string][]model.ServerTool{}
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		mu.Lock()
		defer mu.Unlock()
		first := len(r.Messages) == 1
		denied[r.Call.Agent] = r.DeniedServerTools
		if len(r.Tools) > 0 && first {
			return callsTool(r.Tools[0].Name, `{"task":"help"}`)
		}
		return saysText("done")
	})
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	off := false
	s.worker = s.open(t, &worker.Options{
		TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Models: map[string]model.Model{"script": m}, Temporal: stopsSoon,
		Agents: []agent.Definition{
			{Name: "tester", Model: "script/m", AwaitResumption: &off, Agents: []agent.SubAgent{{Agent: "middle", Tools: []string{"subagent__*", "server_tools:web_search"}}}},
			{Name: "middle", Model: "script/m", AwaitResumption: &off, Agents: []agent.SubAgent{{Agent: "bottom"}}},
			{Name: "bottom", Model: "script/m", Ceiling: []string{"server_tools:code_execution"}},
		},
	})
	_, out := s.run(t, "go", nil)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, map[string][]model.ServerTool{"tester": {}, "middle": {model.CodeExecution}, "bottom": {model.WebSearch, model.CodeExecution}}, denied)
}
