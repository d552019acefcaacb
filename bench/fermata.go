package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	temporal "go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// Our side: agents n0, n1, … that delegate to one another. Every agent with sub-agents
// runs a tool while they work; the others wait for their model.
const (
	sideFermata = "fermata"
	sideTrees   = "crew" // our workers for trees
)

// definitions returns the agents, one for each level.
func definitions(fanout []int) (agents []agent.Definition) {
	for i := range len(fanout) + 1 {
		def := agent.Definition{
			Name: fmt.Sprintf("n%d", i), Model: "script", Tools: []string{"hold"}, ModelTimeout: agent.Duration(long), ModelSilence: agent.Duration(long),
		}
		if i < len(fanout) {
			def.Agents = []agent.SubAgent{{Agent: fmt.Sprintf("n%d", i+1)}}
		}
		agents = append(agents, def)
	}
	return agents
}

// script is the model of all agents: those of level n delegate to level n+1.
func script(fanout []int) *testsuite.Script {
	rules := []testsuite.Reply{
		{Match: "You are being stopped", Text: `{"summary":"` + summary + `"}`},
		{Match: "You were suspended", Text: "done"}, // it continues after the interrupt
	}
	for level, n := range fanout {
		r := testsuite.Reply{Match: fmt.Sprintf(`(?m)\Alevel %d$`, level), Calls: []testsuite.Call{{Tool: "hold", Arguments: map[string]any{}}}}
		for i := range n {
			r.Calls = append(r.Calls, testsuite.Call{Tool: fmt.Sprintf("subagent__n%d", level+1), Arguments: map[string]any{
				"task": fmt.Sprintf("level %d", level+1), "context": fmt.Sprintf("part %d", i),
			}})
		}
		rules = append(rules, r)
	}
	return testsuite.NewScript(append(rules,
		testsuite.Reply{Match: fmt.Sprintf(`\Alevel %d`, len(fanout)), Text: "I think", Delay: long},
		testsuite.Reply{Match: ".*", Text: "done"})...)
}

// summary is what every agent's model writes when it is stopped.
const summary = "I had half"

func workTrees(ctx context.Context, c temporal.Client, j job, r *recorder) (stop func(), err error) {
	dir, err := store.OpenDir(j.Dir, nil)
	if err != nil {
		return nil, err
	}
	hold := tool.New("hold", "works until it is stopped", func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		r.tool(c.Key)
		<-ctx.Done()
		return "half", nil
	}, nil)
	w, err := worker.New(c, &worker.Options{
		TaskQueue: j.queue(sideTrees), Agents: definitions(j.Fanout), Tools: []tool.Tool{hold}, Store: dir, Logger: zap.NewNop(),
		Models: map[string]model.Model{"script": script(j.Fanout)}, Temporal: stopsSoon,
	})
	if err != nil {
		return nil, err
	}
	return w.Stop, w.Start(ctx)
}

// fermataTrees starts our trees.
type fermataTrees struct {
	client *client.Client
	fanout []int
}

func newFermataTrees(c temporal.Client, j job) (*fermataTrees, error) {
	dir, err := store.OpenDir(j.Dir, nil)
	if err != nil {
		return nil, err
	}
	return &fermataTrees{client.New(c, &client.Options{TaskQueue: j.queue(sideTrees), Store: dir}), j.Fanout}, nil
}

func (g *fermataTrees) start(ctx context.Context) (runningTree, error) {
	run, err := g.client.Start(ctx, "n0", "level 0", nil)
	return &fermataTree{run, g.fanout}, err
}

type fermataTree struct {
	run    *client.Run
	fanout []int
}

func (t *fermataTree) id() string { return t.run.Session }

// interrupt returns with the root's own answer.
func (t *fermataTree) interrupt(ctx context.Context) (heard, rests bool, err error) {
	ack, err := t.run.Interrupt(ctx, "measured", nil)
	return true, ack.Status == agent.StatusSuspended, err
}

func (t *fermataTree) status(ctx context.Context) (heard, rests bool, err error) {
	s, err := t.run.Status(ctx)
	if errors.Is(err, agent.CodeTimeout) {
		return false, false, ctx.Err() // it is asked again
	}
	return s.Suspension != nil, s.Status == agent.StatusSuspended, err
}

// awaitQuiet waits until all agents are suspended, with their logs stored.
func (t *fermataTree) awaitQuiet(ctx context.Context) error { return t.all(ctx, agent.StatusSuspended) }

func (t *fermataTree) all(ctx context.Context, want agent.Status) error {
	return until(ctx, "all agents to be "+string(want), func() (bool, error) {
		time.Sleep(50 * time.Millisecond)
		nodes, err := t.run.Tree(ctx)
		other := slices.ContainsFunc(nodes, func(n agent.Node) bool { return n.Status != want })
		return len(nodes) == count(t.fanout) && !other, err
	})
}

// end checks whether an interrupted tree can continue, in even repetitions, or can be
// stopped, in odd ones.
func (t *fermataTree) end(ctx context.Context, rep int, c *workerProcs) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if rep%2 == 0 {
		return t.resume(ctx, c)
	}
	return t.stop(ctx)
}

// resume continues the tree. It checks that all of it completes, and that nothing
// finished is done again.
func (t *fermataTree) resume(ctx context.Context, c *workerProcs) error {
	if _, err := t.run.Resume(ctx, nil); err != nil {
		return err
	}
	o, err := t.run.Result(ctx)
	if err != nil {
		return err
	}
	if o.Status != agent.StatusCompleted {
		return fault("resumed, the root is %s (%s): %v", o.Status, o.Reason, o.Err())
	}
	if err := t.all(ctx, agent.StatusCompleted); err != nil {
		return err
	}
	var faults []error
	var want []agent.ToolCount
	if n, _ := branch(t.fanout); n > 0 {
		want = []agent.ToolCount{{Tool: "hold", Calls: 1, OK: 1}, {Tool: "subagent__n1", Calls: n, OK: n}}
	}
	if !slices.Equal(o.Tools, want) {
		faults = append(faults, fault("resumed, the root's tool calls were %+v", o.Tools))
	}
	calls := c.calls()
	if inner := count(t.fanout) - leaves(t.fanout); len(calls) != inner {
		faults = append(faults, fault("%d tool calls in a tree of %d agents with others below", len(calls), inner))
	}
	for key, n := range calls {
		if n != 1 {
			faults = append(faults, fault("the tool call %s was made %d times", key, n))
		}
	}
	// Every model was called once before the interrupt, and once after.
	if n := c.asked(); n != 2*count(t.fanout) {
		faults = append(faults, fault("%d model calls in a tree of %d agents, where each needs 2", n, count(t.fanout)))
	}
	return errors.Join(faults...)
}

// stop stops the tree, and checks that every agent's handoff is there, in the tree's
// order.
func (t *fermataTree) stop(ctx context.Context) error {
	if _, err := t.run.Stop(ctx, "measured", &client.StopOptions{Deadline: patience}); err != nil {
		return err
	}
	o, err := t.run.Result(ctx)
	if err != nil {
		return err
	}
	if o.Status != agent.StatusStopped || o.Handoff == nil {
		return fault("stopped, the root is %s (%s): %v", o.Status, o.Reason, o.Err())
	}
	var has []string
	silent := 0
	for h := range o.Handoff.All() {
		has = append(has, h.Session)
		if h.Summary != summary {
			silent++
		}
	}
	var faults []error
	if want := sessions(t.run.Session, 1, t.fanout); !slices.Equal(has, want) {
		faults = append(faults, fault("the handoff has %d agents where the tree has %d, or another order", len(has), len(want)))
	}
	if silent > 0 {
		faults = append(faults, fault("in the handoff %d of %d agents lack their summary", silent, len(has)))
	}
	return errors.Join(faults...)
}

// sessions returns the sessions of a tree, depth first.
func sessions(root string, level int, fanout []int) []string {
	list := []string{root}
	n, below := branch(fanout)
	for i := range n {
		list = append(list, sessions(fmt.Sprintf("%s/n%d-%d", root, level, i+1), level+1, below)...)
	}
	return list
}
