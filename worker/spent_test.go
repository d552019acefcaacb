package worker_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// cutOff breaks the streams of a model's first replies off, after it has told what they use.
type cutOff struct {
	model.Model
	left atomic.Int32
	told agent.Usage
}

func (c *cutOff) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	if c.left.Add(-1) < 0 {
		return c.Model.Generate(ctx, req, emit)
	}
	emit(model.Delta{Usage: c.told})
	emit(model.Delta{Text: "I was about to"})
	fault := model.Fault(agent.FaultTransient, 200, 1, "the stream broke off")
	return nil, fault
}

func cutting(n int32, script *testsuite.Script) map[string]model.Model {
	c := &cutOff{Model: script, told: agent.Usage{Input: 1000, Output: 20}}
	c.left.Store(n)
	return map[string]model.Model{"m": model.WithInfo(c, "m", model.Info{Price: agent.Price{Input: agent.Dollar, Output: agent.Dollar}})}
}

// Streams that broke off cost as well: a run that continues after them has used what they
// did, marked as estimated, and one that fails for them, too. Both are held to their limits.
func TestBrokenStreamsAreCharged(t *testing.T) {
	def := agent.Definition{Name: "a", Model: "m", ModelAttempts: 2}
	out, err := run(t, &worker.Options{Agents: []agent.Definition{def}, Models: cutting(1, testsuite.NewScript(testsuite.Reply{Text: "done", Usage: testsuite.Usage{Input: 10, Output: 1}}))})
	require.NoError(t, err)
	require.Equal(t, "done", out.Text)
	require.Equal(t, agent.Usage{Input: 1010, Output: 21}, out.Usage)
	require.Equal(t, agent.USD(1031), out.Cost)
	require.Equal(t, agent.Estimate{Tokens: 1020, Cost: 1020}, out.Tree.Estimated)

	out, err = run(t, &worker.Options{Agents: []agent.Definition{def}, Models: cutting(9, testsuite.NewScript())})
	require.ErrorIs(t, err, agent.CodeProviderError)
	require.Equal(t, string(agent.CodeProviderError), out.Reason)
	require.Equal(t, int64(2*1020), out.Usage.Total())
	require.Empty(t, out.Error.Charges, "it stands in the usage")
}

// A stream that broke off costs as well when another model answers: the run has used both, each at its
// own price, and the failed one is marked as estimated.
func TestABrokenStreamIsChargedBesideItsFallback(t *testing.T) {
	models := cutting(9, testsuite.NewScript())
	models["n"] = model.WithInfo(testsuite.NewScript(testsuite.Reply{Text: "done", Usage: testsuite.Usage{Input: 10, Output: 1}}), "n", model.Info{Price: agent.Price{Input: 3 * agent.Dollar, Output: 3 * agent.Dollar}})
	out, err := run(t, &worker.Options{Agents: []agent.Definition{{Name: "a", Model: "m", Fallbacks: []string{"n"}, ModelAttempts: 1}}, Models: models})
	require.NoError(t, err)
	require.Equal(t, "done", out.Text)
	require.Equal(t, agent.Usage{Input: 1010, Output: 21}, out.Usage)
	require.Equal(t, agent.USD(1020+3*11), out.Cost)
	require.Equal(t, agent.Estimate{Tokens: 1020, Cost: 1020}, out.Tree.Estimated)
}

// claims replies with a usage that no model has.
type claims struct {
	model.Model
	usage agent.Usage
}

func (c claims) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	emit(model.Delta{Usage: c.usage})
	reply, err := c.Model.Generate(ctx, req, emit)
	if err == nil {
		reply.Usage = c.usage
	}
	return reply, err
}

// A usage that can't be is not recorded, whatever model tells it.
func TestClaimedUsageIsBounded(t *testing.T) {
	def := agent.Definition{Name: "a", Model: "m"}
	for _, usage := range []agent.Usage{{Input: -50, Output: 7}, {Input: math.MaxInt64, Output: 7}} {
		m := claims{testsuite.NewScript(testsuite.Reply{Text: "done"}), usage}
		out, err := run(t, &worker.Options{Agents: []agent.Definition{def}, Models: map[string]model.Model{"m": model.WithInfo(m, "m", model.Info{Price: agent.Price{Input: agent.Dollar}})}})
		require.NoError(t, err)
		require.Equal(t, model.ClampUsage(usage), out.Usage)
		require.GreaterOrEqual(t, out.Cost, agent.USD(0))
	}
}
