package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
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
			Models: map[string]model.Model{"script": testsuite.NewScript(reply, reply, reply)}, Daily: agent.Daily{Tokens: tokens},
		})
		require.NoError(t, err)
		require.NoError(t, w.Start(t.Context()))
		t.Cleanup(w.Stop)
		return w
	}
	first := work(150)
	for range 2 { // the second goes over, by one reply
		_, out := s.run(t, "go", nil)
		require.Equal(t, agent.Completed, out.Status)
	}
	first.Stop()
	second := work(150) // another process
	run, err := s.Start(t.Context(), "tester", "go", nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		status, err := run.Status(t.Context())
		return err == nil && len(status.Doing) == 1 && status.Doing[0].Delay != nil
	}, patience, 50*time.Millisecond)
	status, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Contains(t, status.Doing[0].Delay.Error.Message, "the daily limit of the task queue "+s.queue+" (150 tokens) is used up; it begins anew at midnight UTC")
	second.Stop()
	work(1000)
	grant, err := signals.ClaimDaily(t.Context(), s.temporal, s.queue, agent.DailyClaim{Limits: agent.Daily{Tokens: 1000}})
	require.NoError(t, err)
	require.Positive(t, grant.Granted.Tokens)
	require.NoError(t, s.temporal.CancelWorkflow(t.Context(), run.Session, ""))
}
