package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// The stories of held runs that killed workers play: one that asks and then pays,
// and a tree that is stopped while its agents work.
func heldScript() *testsuite.Script {
	work := map[string]any{"task": "help"}
	return testsuite.NewScript(
		testsuite.Reply{Match: `\Aask`, Calls: call(agent.AskUserTool, map[string]any{"question": "Where to?"})},
		testsuite.Reply{Match: `You were suspended .* "Where to\?"`, Calls: call("pay", map[string]any{"n": 1})},
		testsuite.Reply{Match: `\Abuy`, Calls: call("pay", map[string]any{"n": 800})},
		testsuite.Reply{Match: `\Aslow`, Calls: call("heedless", map[string]any{})},
		testsuite.Reply{Match: `\Alead`, Calls: []testsuite.Call{{Tool: "subagent__helper", Arguments: work}, {Tool: "subagent__helper", Arguments: work}}},
		testsuite.Reply{Match: `\Areport`, Calls: call("subagent__helper", map[string]any{"task": "help", "background": true})},
		testsuite.Reply{Match: `"status":"running"`, Calls: call(agent.ReturnUnableTool, map[string]any{"blockers": []string{"no key for the bank"}, "rationale": "Nobody can pay without it."})},
		testsuite.Reply{Match: `\Ahelp`, Calls: call("linger", map[string]any{})},
		testsuite.Reply{Match: "You are being stopped", Text: `{"summary":"half of it"}`, Delay: 50 * time.Millisecond},
		testsuite.Reply{Match: ".*", Text: "done"})
}

func heldAgents() []agent.Definition {
	return []agent.Definition{
		{Name: "asker", Model: "held", Tools: []string{agent.AskUserTool, "pay"}},
		{Name: "buyer", Model: "held", Tools: []string{"pay"}, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}, Reason: "It costs."}}},
		{Name: "lead", Model: "held", Agents: []agent.SubAgent{{Agent: "helper", Tools: []string{"linger"}}}},
		{Name: "reporter", Model: "held", Agents: []agent.SubAgent{{Agent: "helper", Tools: []string{"linger"}}}, Lifecycle: true, Completion: agent.CompletionTool, Recovery: agent.Recovery{agent.FailureUnable: {Do: agent.RecoverHandoff}}},
		{Name: "helper", Model: "held", Tools: []string{"linger"}},
		{Name: "slow", Model: "held", Tools: []string{"heedless"}},
	}
}

func linger() tool.Tool {
	return tool.New("linger", "works until it is stopped", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
		<-ctx.Done()
		return "half", nil
	}, &tool.Options{ReadOnly: true})
}

// tenSeconds is a tool that works for ten seconds and does not heed its context.
func tenSeconds() tool.Tool {
	return tool.New("heedless", "works for ten seconds", func(context.Context, *tool.Call, struct{}) (string, error) {
		<-time.After(10 * time.Second)
		return "done", nil
	}, nil)
}

// cell is a task queue for worker processes.
type cell struct {
	*client.Client
	addr, queue, dir string
}

func newCell(t *testing.T, queue string) *cell {
	t.Helper()
	server := shared(t)
	c := dial(t, server)
	dir := t.TempDir()
	st := stored(t, dir)
	return &cell{Client: client.New(c, &client.Options{TaskQueue: queue, Store: st}), addr: server.Addr(), queue: queue, dir: dir}
}

func waitFor(t *testing.T, run *client.Run) *agent.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	o, err := run.Wait(ctx)
	require.NoError(t, err)
	return o
}

// An open approval stands in the event that tells of it and in the status
// with the same content. All of it outlives the worker, and the call is made once
// (HX-54, HX-55).
func TestAnApprovalOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	c := newCell(t, "kill-approval")
	run, err := c.Start(t.Context(), "buyer", "buy", nil)
	require.NoError(t, err)
	w := startWorker(t, c.addr, c.queue, c.dir)
	require.Equal(t, agent.StatusSuspended, waitFor(t, run).Status)
	q := c.asked(t, run)
	require.Equal(t, []any{"q-1", agent.RequestApproval, "Run pay? It costs."}, []any{q.ID, q.Type, q.Text})
	require.Equal(t, []string{"t1.1", "pay"}, []string{q.Call.ID, q.Call.Tool})
	require.JSONEq(t, `{"n":800}`, string(q.Call.Arguments))
	kill(w)
	startWorker(t, c.addr, c.queue, c.dir)
	require.Equal(t, q, c.asked(t, run))
	_, err = c.Approve(t.Context(), q, nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, waitFor(t, run).Status)
	written, err := os.ReadFile(filepath.Join(c.dir, "journal"))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(written), "\n"), "paid once")
}

// asked is the one request of a run, which event and status tell alike.
func (c *cell) asked(t *testing.T, run *client.Run) agent.Request {
	t.Helper()
	st, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusSuspended, st.Status)
	require.Len(t, st.Suspension.Requests, 1)
	var told []agent.Request
	for e, err := range c.Events(t.Context(), run.Session, nil) {
		require.NoError(t, err)
		if e.Type == agent.EventRequestOpened {
			told = append(told, *e.Request)
		}
	}
	require.Equal(t, told, st.Suspension.Requests)
	return told[0]
}

// A run that waits for an answer loses nothing when its worker is killed, however
// often, and neither does the answer (HL-12, HL-46, HL-47, OA-30, PA-78).
func TestKilledWhileSuspended(t *testing.T) {
	t.Parallel()
	c := newCell(t, "kill-held")
	run, err := c.Start(t.Context(), "asker", "ask", nil)
	require.NoError(t, err)
	w := startWorker(t, c.addr, c.queue, c.dir)
	o := waitFor(t, run)
	require.Equal(t, agent.StatusSuspended, o.Status)
	kill(w)
	_, later, err := c.UpdateOrSignal(t.Context(), run.Session, agent.PauseCommand{Reason: "nobody is there"})
	require.NoError(t, err)
	require.True(t, later, "a hold is left where no worker answers")
	w = startWorker(t, c.addr, c.queue, c.dir)
	_, err = c.Answer(t.Context(), o.Suspension.Requests[0], "Rome", nil)
	require.NoError(t, err)
	st, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusSuspended, st.Status, "the answer is kept, and the hold too")
	kill(w)
	startWorker(t, c.addr, c.queue, c.dir)
	_, err = run.Resume(t.Context(), nil)
	require.NoError(t, err)
	o = waitFor(t, run)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	written, err := os.ReadFile(filepath.Join(c.dir, "journal"))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(written), "\n"), "paid once")
}

// A tree that is being stopped ends with every agent's handoff, though its workers
// are killed while they sum up and drain (HX-84).
func TestKilledWhileStopping(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	var all sync.WaitGroup
	for seed := range uint64(3) {
		all.Go(func() {
			c := newCell(t, fmt.Sprintf("kill-stop-%d", seed))
			w := startWorker(t, c.addr, c.queue, c.dir)
			run, err := c.Start(t.Context(), "lead", "lead", nil)
			require.NoError(t, err)
			lingering(t, run)
			_, err = run.Stop(t.Context(), "budget meeting", &client.StopOptions{Deadline: 40 * time.Second})
			require.NoError(t, err)
			random := rand.New(rand.NewPCG(seed, 2))
			for range 2 {
				life, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(300))*time.Millisecond)
				_, _ = run.Result(life) // whatever comes first
				cancel()
				kill(w)
				w = startWorker(t, c.addr, c.queue, c.dir)
			}
			o := waitFor(t, run)
			require.Equal(t, agent.StatusStopped, o.Status, "%+v", o.Error)
			n := 0
			for h := range o.Handoff.All() {
				require.NotEmpty(t, h.Summary)
				n++
			}
			require.Equal(t, 3, n)
		})
	}
	all.Wait()
}

// lingering waits until both helpers are at their tools.
func lingering(t *testing.T, run *client.Run) {
	t.Helper()
	require.Eventually(t, func() bool {
		tree, err := run.Tree(t.Context())
		return err == nil && len(tree) == 3 && tree[1].Run != "" && tree[2].Run != ""
	}, patience, 20*time.Millisecond)
}

// Parked runs hold nothing: a hundred of them lose their worker, another one
// starts, and each goes on (HL-03, HL-63, HL-82, HL-115, HA-111).
func TestParkedRunsHoldNothing(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	const runs = 100
	script := testsuite.NewScript(testsuite.Reply{Text: "done"})
	s := setup(t, agent.Definition{}, script)
	parked := make([]*client.Run, runs)
	inParallel(parked, func(i int, _ *client.Run) {
		parked[i] = s.begin(t, "go", &client.StartOptions{Park: &agent.Conditions{}})
		require.Equal(t, agent.SuspensionParked, s.suspended(t, parked[i]).Kind)
	})
	require.Empty(t, script.Requests(), "no model is asked before the park ends")
	s.worker.Stop()
	for _, run := range parked {
		d, err := s.temporal.DescribeWorkflowExecution(t.Context(), run.Session, "")
		require.NoError(t, err)
		require.Empty(t, d.GetPendingActivities(), "nothing is in flight")
	}
	s.work(t, agent.Definition{}, script)
	inParallel(parked, func(_ int, run *client.Run) {
		_, err := run.Resume(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, agent.StatusCompleted, s.rest(t, run).Status)
	})
}

// inParallel does something with each run, eight at a time.
func inParallel(runs []*client.Run, do func(int, *client.Run)) {
	var all sync.WaitGroup
	gate := make(chan struct{}, 8)
	for i, run := range runs {
		all.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			do(i, run)
		})
	}
	all.Wait()
}
