package worker_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// failing is the reply of a model that always fails.
func failing(kind agent.FaultKind) testsuite.Reply {
	return testsuite.Reply{Repeat: 9, Fail: slices.Repeat([]testsuite.Failure{{Kind: kind, Message: string(kind), HTTP: 500}}, 99)}
}

// A model that is down is asked until its circuit opens, by whatever turn and
// run; its fallback answers in the meantime, under its own name and price.
func TestAFallbackForAModelThatIsDown(t *testing.T) {
	down := testsuite.NewScript(failing(agent.FaultOverload))
	reply := testsuite.Reply{Calls: []testsuite.Call{{Tool: "look"}}, Usage: testsuite.Usage{Input: 1000, Output: 10}, Repeat: 3}
	backup := testsuite.NewScript(reply, testsuite.Reply{Text: "done", Usage: testsuite.Usage{Input: 1000, Output: 10}})
	price := func(usd agent.USD) model.Info { return model.Info{Price: agent.Price{Input: usd, Output: usd}} }
	out, err := run(t, &worker.Options{
		Agents: []agent.Definition{{Name: "a", Model: "down", Fallbacks: []string{"gone", "backup"}, Tools: []string{"look"}, Limits: agent.Limits{CostUSD: agent.Dollar}}},
		Models: map[string]model.Model{
			"down": model.WithInfo(down, "m", price(100*agent.Dollar)), "backup": model.WithInfo(backup, "b", price(agent.Dollar)),
			"gone": model.WithInfo(testsuite.NewScript(failing(agent.FaultQuota)), "g", price(agent.Dollar)),
		},
		Tools: []tool.Tool{echo("look")},
	})
	require.NoError(t, err)
	require.Equal(t, "done", out.Text)
	require.Equal(t, 4, out.Turns)
	require.Equal(t, agent.USD(4*1010), out.Cost)
	require.Len(t, down.Requests(), 5, "four attempts of the first turn, one of the second, and then its circuit is open")
	require.Len(t, backup.Requests(), 4)
	for _, m := range backup.Requests()[3].Messages {
		if m.Role == agent.RoleAssistant {
			require.Equal(t, "backup", m.Model)
		}
	}
}

// Another model is asked at once where waiting does not help, after all attempts
// where it may, and not at all where it would fail, too.
func TestWhenAFallbackIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		first         testsuite.Reply
		window, other int
		asked         int // the first model
		answered      bool
	}{
		"limit of rate": {failing(agent.FaultRateLimit), 0, 0, 4, true},
		"a day's wait":  {testsuite.Reply{Fail: []testsuite.Failure{{Kind: agent.FaultRateLimit, RetryAfter: 24 * time.Hour}}}, 0, 0, 1, true},
		"wrong key":     {failing(agent.FaultAuth), 0, 0, 1, true},
		"no money":      {failing(agent.FaultQuota), 0, 0, 1, true},
		"wrong":         {failing(agent.FaultBadRequest), 0, 0, 1, false},
		"refused":       {testsuite.Reply{Text: "no", Finish: "content_filter"}, 0, 0, 1, false},
		"longer window": {failing(agent.FaultContext), 100, 101, 1, true},
		"same window":   {failing(agent.FaultContext), 100, 100, 1, false},
		"who knows":     {failing(agent.FaultContext), 0, 100, 1, false},
		"nor here":      {failing(agent.FaultContext), 100, 0, 1, false},
		"silent":        {testsuite.Reply{Text: "late", Delay: time.Minute}, 0, 0, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			first, other := testsuite.NewScript(c.first), testsuite.NewScript(testsuite.Reply{Text: "hello"})
			def := agent.Definition{Name: "a", Model: "first", Fallbacks: []string{"other"}, Compaction: agent.CompactionPolicy{Strategy: agent.CompactionNone}}
			if name == "silent" {
				def.ModelSilence, def.ModelAttempts = agent.Duration(30*time.Millisecond), 1
			}
			out, err := run(t, &worker.Options{Agents: []agent.Definition{def}, Models: map[string]model.Model{
				"first": model.WithInfo(first, "f", model.Info{Window: c.window}), "other": model.WithInfo(other, "o", model.Info{Window: c.other}),
			}})
			require.Len(t, first.Requests(), c.asked)
			if !c.answered {
				require.Error(t, err)
				require.Empty(t, other.Requests())
				return
			}
			require.NoError(t, err)
			require.Equal(t, "hello", out.Text)
		})
	}
}

// Where all fail, the run fails with the fault of its model, and says what the
// others said; what may pass is waited for.
func TestAllModelsFail(t *testing.T) {
	first, other := testsuite.NewScript(failing(agent.FaultAuth)), testsuite.NewScript(failing(agent.FaultTransient))
	out, err := run(t, &worker.Options{
		Agents: []agent.Definition{{Name: "a", Model: "first", Fallbacks: []string{"other"}}},
		Models: map[string]model.Model{"first": first, "other": other},
	})
	require.ErrorIs(t, err, agent.CodeProviderAuth)
	require.Equal(t, "first: auth; other: transient", out.Error.Message)
	require.Equal(t, agent.CodeProviderAuth, out.Error.Code)
	require.Equal(t, agent.ProviderFault{Kind: agent.FaultAuth, Model: "first", HTTP: 500}, *out.Error.Provider)
	require.Len(t, first.Requests(), 4)
	require.Len(t, other.Requests(), 4)
}

// What other runs met opens the circuit for this one, too. While nobody is asked
// at all, a run has twice as many attempts: a circuit that closes again must not
// have ended it.
func TestACircuitThatStaysOpen(t *testing.T) {
	seen, first := &book{}, testsuite.NewScript(failing(agent.FaultOverload))
	again := process(t, &worker.Options{
		Agents:     []agent.Definition{{Name: "a", Model: "first"}},
		Models:     map[string]model.Model{"first": first},
		Middleware: []model.Middleware{func(m model.Model) model.Model { return spy{m, "", seen} }},
	})
	_, err := again()
	require.ErrorContains(t, err, "first: overload")
	_, err = again()
	require.ErrorContains(t, err, "first: it was not asked, since it failed 5 times in a row")
	require.Len(t, first.Requests(), 4+1)
	require.Len(t, seen.calls, 4+8)
}

func TestFallbacksThatCannotBe(t *testing.T) {
	priced := model.WithInfo(testsuite.NewScript(), "m", model.Info{Price: agent.Price{Input: 1}})
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	o := &worker.Options{
		Agents: []agent.Definition{
			{Name: "a", Model: "priced", Fallbacks: []string{"missing"}},
			{Name: "b", Model: "priced", Fallbacks: []string{"free", "nowhere/m"}, Limits: agent.Limits{CostUSD: 1}},
			{Name: "c", Model: "priced", Fallbacks: []string{"free", "priced"}},
			{Name: "d", Model: "priced", Fallbacks: []string{" "}},
			{Name: "e", Model: "priced", Fallbacks: []string{"free"}},
		},
		Models: map[string]model.Model{"priced": priced, "free": testsuite.NewScript()}, Store: dir,
	}
	d, err := o.Resolve()
	require.Error(t, err)
	for _, says := range []string{
		`agent a: fallbacks: model "missing" is not in this worker's build; it has free, priced`,
		`agent b: fallbacks: model "nowhere/m" is not in this`, "agent b: limits.cost_usd can't be held, since the price of free is not known",
		"agent c: fallbacks[1]: priced is asked already", "agent d: fallbacks[0] is empty",
	} {
		require.Contains(t, err.Error(), says)
	}
	require.Len(t, strings.Split(err.Error(), "\n"), 5, err.Error())
	require.Equal(t, []string{"free"}, d.Agents["e"].Spec.Unpriced, "a start may bring a limit")
}
