package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// All runs of a task queue share its daily limit, over worker processes: once it is used up,
// calls wait and say for what, and go on where the limit was raised.
func TestADailyLimit(t *testing.T) {
	s := on(t, shared(t))
	reply := testsuite.Reply{Text: "done", Usage: testsuite.Usage{Input: 60, Output: 40}}
	work := func(tokens int64) *worker.Worker {
		w, err := worker.New(s.temporal, &worker.Options{
			TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon, Agents: []agent.Definition{{Name: "tester", Model: "script"}},
			Models: map[string]model.Model{"script": testsuite.NewScript(reply, reply, reply)}, DailyLimits: agent.DailyLimits{Tokens: tokens},
		})
		require.NoError(t, err)
		require.NoError(t, w.Start(t.Context()))
		t.Cleanup(w.Stop)
		return w
	}
	first := work(150)
	for range 2 { // the second goes over, by one reply
		_, out := s.run(t, "go", nil)
		require.Equal(t, agent.StatusCompleted, out.Status)
	}
	first.Stop()
	second := work(150) // another process
	run, err := s.Start(t.Context(), "tester", "go", nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		status, err := run.Status(t.Context())
		return err == nil && len(status.InFlight) == 1 && status.InFlight[0].Delay != nil
	}, patience, 50*time.Millisecond)
	status, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Contains(t, status.InFlight[0].Delay.Error.Message, "the daily limit of the task queue "+s.queue+" (150 tokens) is used up; it starts again at zero at midnight UTC")
	second.Stop()
	work(1000)
	grant, err := signals.ClaimDaily(t.Context(), s.temporal, s.queue, wire.DailyClaim{Limits: agent.DailyLimits{Tokens: 1000}})
	require.NoError(t, err)
	require.Positive(t, grant.Granted.Tokens)
	require.NoError(t, s.temporal.CancelWorkflow(t.Context(), run.Session, ""))
}

// atTheStop answers when its worker stops.
type atTheStop struct {
	model.Model
	begun chan struct{}
}

func (m atTheStop) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	close(m.begun)
	<-activity.GetWorkerStopChannel(ctx)
	return m.Model.Generate(ctx, req, emit)
}

// A worker that stops in the middle of a call gives back what the call has not used. Where
// there are keys, the account is encrypted as all else.
func TestAWorkerThatStopsGivesBackItsDailyPart(t *testing.T) {
	t.Chdir(t.TempDir())
	s := devserver.ForTest(t)
	v := process(t, newKey(t, "k1"), s)
	reply := testsuite.NewScript(testsuite.Reply{Text: "done", Usage: testsuite.Usage{Input: 60, Output: 40}})
	work := func(m model.Model, daily agent.DailyLimits) *worker.Worker {
		w, err := worker.New(v.temporal, &worker.Options{
			TaskQueue: t.Name(), Store: v.store, Logger: zap.NewNop(), Temporal: stopsSoon,
			Agents: []agent.Definition{{Name: "tester", Model: "script"}}, Models: map[string]model.Model{"script": m}, DailyLimits: daily,
		})
		require.NoError(t, err)
		require.NoError(t, w.Start(t.Context()))
		t.Cleanup(w.Stop)
		return w
	}
	limits := agent.DailyLimits{Tokens: 10_000}
	slow := atTheStop{reply, make(chan struct{})}
	first := work(slow, limits)
	run, err := v.Start(t.Context(), "tester", "go", nil)
	require.NoError(t, err)
	<-slow.begun
	work(reply, limits)
	first.Stop()
	out, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, out.Status)
	grant, err := signals.ClaimDaily(t.Context(), v.temporal, t.Name(), wire.DailyClaim{Limits: limits})
	require.NoError(t, err)
	require.EqualValues(t, (10_000-100)/50, grant.Granted.Tokens)
}

// The account goes on in a new execution while many workers claim: no claim is lost, and
// none counts twice.
func TestADailyAccountGoesOnWhileWorkersClaim(t *testing.T) {
	s := early(t, 40)
	s.work(t, agent.Definition{}, testsuite.NewScript())
	const workers, claims, limit = 24, 5, 1_000_000_000
	var mu sync.Mutex
	granted, failed := int64(0), []error(nil)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range claims {
				g, err := signals.ClaimDaily(t.Context(), s.temporal, s.queue, wire.DailyClaim{ID: fmt.Sprintf("%d.%d", w, i), Limits: agent.DailyLimits{Tokens: limit}})
				mu.Lock()
				if err != nil {
					failed = append(failed, err)
				}
				granted += g.Granted.Tokens
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.Empty(t, failed)
	d, err := s.temporal.DescribeWorkflowExecution(t.Context(), signals.DailyID(s.queue), "")
	require.NoError(t, err)
	first := d.GetWorkflowExecutionInfo().GetFirstRunId()
	require.NotEqual(t, first, d.GetWorkflowExecutionInfo().GetExecution().GetRunId())
	s.keep(t, "daily", signals.DailyID(s.queue), first)
	require.Eventually(t, func() bool { // listings are behind
		tried := 0
		for v, err := range worker.Preflight(t.Context(), s.temporal, &worker.Options{TaskQueue: s.queue}, nil) {
			require.NoError(t, err)
			require.NoError(t, v.Err())
			require.Equal(t, signals.DailyID(s.queue), v.Session)
			tried++
		}
		return tried == 1
	}, patience, 50*time.Millisecond, "a new build is tried on it, too")
	g, err := signals.ClaimDaily(t.Context(), s.temporal, s.queue, wire.DailyClaim{Limits: agent.DailyLimits{Tokens: limit}})
	require.NoError(t, err)
	require.EqualValues(t, (limit-granted)/50, g.Granted.Tokens)
}
