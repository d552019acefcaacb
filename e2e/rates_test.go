package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// gate is a model each of whose calls waits until the test lets it go on.
type gate struct {
	entered chan string   // what each call is asked, as it begins
	leave   chan struct{} // one for each call that may end
	mu      sync.Mutex
	now     int
	most    int // calls at once
}

func newGate() *gate {
	return &gate{entered: make(chan string, 1000), leave: make(chan struct{}, 1000)}
}

func (g *gate) Info(string) model.Info { return model.Info{} }

func (g *gate) count(by int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now += by
	g.most = max(g.most, g.now)
}

func (g *gate) Generate(ctx context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	g.count(1)
	defer g.count(-1)
	g.entered <- req.Messages[len(req.Messages)-1].Text()
	select {
	case <-g.leave:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &model.Reply{Finish: model.FinishStop, Parts: []agent.Part{{Type: agent.PartText, Text: "done"}}}, nil
}

// next is what the next call to begin is asked.
func (g *gate) next(t *testing.T) string {
	t.Helper()
	select {
	case text := <-g.entered:
		return text
	case <-time.After(patience):
		require.Fail(t, "no call began")
		return ""
	}
}

// waiting is how many calls stand in a queue before the one that matters. Each partition
// of a queue has an order of its own: these tests are of a server with one.
const waiting = 16

// before lets all calls through and wants one of them among the first: some may have
// been handed to the worker already.
func (g *gate) before(t *testing.T, text string) {
	t.Helper()
	var order []string
	for range waiting + 1 {
		g.leave <- struct{}{}
		order = append(order, g.next(t))
	}
	g.leave <- struct{}{}
	require.Less(t, slices.Index(order, text), 4, order)
}

// bounded starts workers whose provider "p" is bounded.
func (s *stage) bounded(t *testing.T, m model.Model, rate worker.RateLimit, workers int) {
	t.Helper()
	for range workers {
		w, err := worker.New(s.temporal, &worker.Options{
			TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon,
			Agents: []agent.Definition{{Name: "tester", Model: "p/m"}}, Models: map[string]model.Model{"p/m": m}, RateLimits: map[string]worker.RateLimit{"p": rate},
		})
		require.NoError(t, err)
		require.NoError(t, w.Start(t.Context()))
		t.Cleanup(w.Stop)
	}
}

func (s *stage) queued(t *testing.T, text string, p temporal.Priority) *client.Run {
	t.Helper()
	run, err := s.Start(t.Context(), "tester", text, &client.StartOptions{Priority: p})
	require.NoError(t, err)
	return run
}

func completed(t *testing.T, runs ...*client.Run) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, run := range runs {
		out, err := run.Result(ctx)
		require.NoError(t, err)
		require.Equal(t, agent.StatusCompleted, out.Status)
	}
}

// A worker makes not more calls of a provider at once than it may; what is over waits
// on the server, and no other worker's slots are taken by it.
func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	const workers, atOnce, runs = 2, 3, 20
	s, g := on(t, shared(t)), newGate()
	s.bounded(t, g, worker.RateLimit{Concurrent: atOnce}, workers)
	var all []*client.Run
	for i := range runs {
		all = append(all, s.queued(t, fmt.Sprint(i), temporal.Priority{}))
	}
	for range workers * atOnce { // as many as there may be have begun
		g.next(t)
	}
	for range runs {
		g.leave <- struct{}{}
	}
	completed(t, all...)
	require.Equal(t, workers*atOnce, g.most)
}

// All workers together begin not more calls in a second than they may.
func TestCallsASecond(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const perSecond, runs = 10, 40
	s, g := on(t, shared(t)), newGate()
	s.bounded(t, g, worker.RateLimit{PerSecond: perSecond}, 2)
	for range runs {
		g.leave <- struct{}{}
	}
	begun := time.Now()
	var all []*client.Run
	for i := range runs {
		all = append(all, s.queued(t, fmt.Sprint(i), temporal.Priority{}))
	}
	completed(t, all...)
	// The server lets a burst of a second's calls through at once.
	require.GreaterOrEqual(t, time.Since(begun), time.Second*(runs-2*perSecond)/perSecond)
}

// What a person waits for goes before what was there earlier.
func TestWhatIsUrgentGoesFirst(t *testing.T) {
	t.Parallel()
	goesBefore(t, temporal.Priority{PriorityKey: 1}, temporal.Priority{PriorityKey: 5})
}

// One tenant's runs do not wait for all that another one has there.
func TestTenantsShareAQueue(t *testing.T) {
	t.Parallel()
	goesBefore(t, temporal.Priority{FairnessKey: "small"}, temporal.Priority{FairnessKey: "large"})
}

// goesBefore lets calls of others wait, and then one, which has to be among the first.
func goesBefore(t *testing.T, one, others temporal.Priority) {
	t.Helper()
	s, g := on(t, devserver.ForPackage(t)), newGate()
	s.bounded(t, g, worker.RateLimit{Concurrent: 1}, 1)
	all := []*client.Run{s.queued(t, "first", temporal.Priority{})}
	require.Equal(t, "first", g.next(t))
	for i := range waiting {
		all = append(all, s.queued(t, fmt.Sprint("other ", i), others))
		s.waits(t, all[len(all)-1])
	}
	mine := s.queued(t, "mine", one)
	s.waits(t, mine)
	g.before(t, "mine")
	completed(t, append(all, mine)...)
}

// waits waits until a run's model call stands in its queue.
func (s *stage) waits(t *testing.T, run *client.Run) {
	t.Helper()
	require.Eventually(t, func() bool {
		d, err := s.temporal.DescribeWorkflowExecution(t.Context(), run.Session, run.ID)
		return err == nil && len(d.GetPendingActivities()) == 1
	}, patience, 5*time.Millisecond)
}

// The runs that go on from one have its priority, and one that no server takes is
// refused before anything begins.
func TestAPriorityGoesOn(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "a"}, testsuite.Reply{Text: "b"}))
	mine := temporal.Priority{PriorityKey: 2, FairnessKey: "acme", FairnessWeight: 3}
	run := s.queued(t, "go", mine)
	completed(t, run)
	next, err := s.Send(t.Context(), run.Session, "and?", nil)
	require.NoError(t, err)
	require.NotEqual(t, run.ID, next.ID)
	fork, err := s.Fork(t.Context(), run.Session, &client.ForkOptions{NewSession: true, Text: "or?"})
	require.NoError(t, err)
	branch, err := fork.Start(t.Context())
	require.NoError(t, err)
	for _, r := range []*client.Run{next, branch} {
		d, err := s.temporal.DescribeWorkflowExecution(t.Context(), r.Session, r.ID)
		require.NoError(t, err)
		p := d.GetWorkflowExecutionInfo().GetPriority()
		require.Equal(t, mine, temporal.Priority{PriorityKey: int(p.GetPriorityKey()), FairnessKey: p.GetFairnessKey(), FairnessWeight: p.GetFairnessWeight()})
	}
	for _, wrong := range []temporal.Priority{{PriorityKey: -1}, {FairnessKey: strings.Repeat("k", 65)}, {FairnessKey: "k", FairnessWeight: -1}} {
		_, err := s.Start(t.Context(), "tester", "go", &client.StartOptions{Priority: wrong})
		require.ErrorIs(t, err, agent.CodeInvalidInput)
	}
}
