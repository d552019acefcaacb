package e2e

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// ledger is middleware that notes every call.
type ledger struct {
	mu    sync.Mutex
	calls map[string][]model.CallInfo // by the provider's name for the model
}

func (l *ledger) wrap(m model.Model) model.Model { return noted{m, l} }

type noted struct {
	model.Model
	ledger *ledger
}

func (n noted) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	n.ledger.mu.Lock()
	n.ledger.calls[req.Model] = append(n.ledger.calls[req.Model], req.Call)
	n.ledger.mu.Unlock()
	return n.Model.Generate(ctx, req, emit)
}

// An agent whose model always fails completes with its fallback, and the host sees
// every call of both, and whose it is (HA-41, HA-42).
func TestAFallbackOnARealServer(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	busy := slices.Repeat([]testsuite.Failure{{Kind: agent.FaultOverload, Message: "busy"}}, 9)
	down := testsuite.NewScript(testsuite.Reply{Fail: busy, Repeat: 2})
	used := testsuite.Usage{Input: 1000}
	backup := testsuite.NewScript(testsuite.Reply{Calls: call("echo", map[string]any{"text": "x"}), Usage: used}, testsuite.Reply{Text: "done", Usage: used})
	seen := &ledger{calls: map[string][]model.CallInfo{}}
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Store: s.dir, Logger: zap.NewNop(), Tools: []tool.Tool{echo(nil)}, Middleware: []model.Middleware{seen.wrap},
		Agents: []agent.Definition{{Name: "tester", Model: "acme/down", Fallbacks: []string{"backup"}, ModelAttempts: 1, Tools: []string{"echo"}}},
		Models: map[string]model.Model{"acme": down, "backup": model.WithInfo(backup, "b", model.Info{Price: agent.Price{Input: agent.Dollar}})},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)

	run, out := s.run(t, "go", nil)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, "done", out.Text)
	require.Equal(t, agent.USD(2000), out.Cost)
	for name, full := range map[string]string{"down": "acme/down", "backup": "backup"} {
		call := model.CallInfo{Session: run.Session, Run: run.ID, Agent: "tester", Model: full, Trace: agent.Trace{Segment: 1, Turn: 1}, Turn: 1, Attempt: 1}
		second := call
		second.Turn, second.Trace.Turn = 2, 2
		require.Equal(t, []model.CallInfo{call, second}, seen.calls[name])
	}
	require.Equal(t, "backup", backup.Requests()[1].Messages[1].Model)
}
