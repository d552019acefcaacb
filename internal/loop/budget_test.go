package loop

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// The clock counts what passes while it runs, and nothing while it stands still.
func TestTheClockOfABudget(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	b := Budget{}
	b.startClock(at(0))
	b.advanceClock(at(10))
	b.setClock(false, at(10))
	b.advanceClock(at(100))
	b.setClock(true, at(100))
	b.setClock(true, at(103)) // it runs already
	b.advanceClock(at(105))
	b.advanceClock(at(104)) // never back
	require.Equal(t, 15*time.Second, b.Worked)
}

// A limit that is renewed counts from then on, and others as before.
func TestARenewedLimit(t *testing.T) {
	b := Budget{}
	b.setLimits(agent.Limits{Tokens: 100, Turns: 5})
	spent := wire.Amounts{}
	spent[wire.ResourceTokens], spent[wire.ResourceTurns] = 120, 4
	b.renew(agent.CodeLimitTokens, spent, 4)
	c := b.allowance()
	require.Equal(t, []int64{220, 5, wire.Unlimited}, []int64{c[wire.ResourceTokens], c[wire.ResourceTurns], c[wire.ResourceCost]})
}

// Of a call of which nothing is known the request is charged: what the model counted last,
// and what was said since.
func TestABlindCharge(t *testing.T) {
	b := Budget{}
	b.addBytes(999)
	b.setRequestTokens(agent.Usage{Input: 50})
	b.addBytes(7)
	require.Equal(t, agent.Charge{Usage: agent.Usage{Input: 53}, Estimated: true}, b.estimatedCharge())
	b.charge(b.estimatedCharge(), agent.Price{})
	require.Equal(t, int64(53), b.Estimated.Tokens)
}

// No usage that a model claims gives back what was used, or makes the run's limits hold no
// more.
func TestNoUsageRefunds(t *testing.T) {
	for _, claimed := range []agent.Usage{
		{Input: -1_000_000_000, Output: -1}, {Input: math.MaxInt64, Output: math.MaxInt64}, {Input: 1e12, Output: 1e12}, {Input: 10, CacheRead: -4_000_000},
	} {
		b := Budget{}
		b.setLimits(agent.Limits{Tokens: 1000, CostUSD: agent.Dollar})
		price := agent.Price{Input: 3 * agent.Dollar, Output: 15 * agent.Dollar, CacheRead: agent.Dollar}
		b.charge(agent.Charge{Usage: agent.Usage{Input: 999_999}, Estimated: true}, price)
		before := b
		for range 3 {
			b.charge(agent.Charge{Usage: claimed, Estimated: true}, price)
			b.charge(agent.Charge{Model: "other", Usage: claimed, Cost: math.MinInt64}, price)
			b.setRequestTokens(claimed)
			require.GreaterOrEqual(t, b.Usage.Total(), before.Usage.Total(), claimed)
			require.GreaterOrEqual(t, b.Cost, before.Cost, claimed)
			require.GreaterOrEqual(t, b.Estimated.Tokens, before.Estimated.Tokens, claimed)
			require.GreaterOrEqual(t, b.LastTurn[wire.ResourceCost], before.LastTurn[wire.ResourceCost], claimed)
			require.GreaterOrEqual(t, b.RequestTokens, int64(0), claimed)
		}
		s := State{Budget: b}
		require.True(t, s.budgetView().exhausted(wire.ResourceTokens), claimed)
		require.True(t, s.budgetView().exhausted(wire.ResourceCost), claimed)
	}
}

// A late reply that claims less than nothing is charged nothing beyond what was guessed.
func TestALateReplyClaimsLessThanNothing(t *testing.T) {
	s := &step{State: State{Phase: RunActive, Spec: &agent.Spec{}, Turn: Turn{AskSeq: 5}, Budget: Budget{EstimatedCharge: agent.Usage{Input: 10}}}}
	require.NoError(t, s.chargeLateReply(5, wire.Reply{Usage: agent.Usage{Input: math.MinInt64, Output: math.MinInt64}, Charges: []agent.Charge{{Usage: agent.Usage{Input: math.MinInt64}}}}))
	require.Zero(t, s.Budget.Usage)
	s.Budget.EstimatedCharge = agent.Usage{Input: 10}
	require.NoError(t, s.chargeLateReply(5, wire.Reply{Usage: agent.Usage{Input: 10, Searches: 3}}))
	require.Equal(t, agent.Usage{Searches: 3}, s.Budget.Usage)
}

// What a cancelled call is charged as an estimate is not charged again when its reply or its failure
// comes late: whatever the attempts have left, and whichever model they asked.
func TestALateReplyIsChargedOnce(t *testing.T) {
	unknown := agent.Charge{Estimated: true}
	open := agent.Charge{Usage: agent.Usage{Input: 10}, Estimated: true}
	for name, c := range map[string]struct {
		late wire.Reply
		used agent.Usage
		cost agent.USD
	}{
		"a lost worker":        {wire.Reply{Charges: []agent.Charge{unknown}}, agent.Usage{Input: 10}, 20},
		"its last heartbeat":   {wire.Reply{Charges: []agent.Charge{open}}, agent.Usage{Input: 10}, 20},
		"two lost workers":     {wire.Reply{Charges: []agent.Charge{unknown, open}}, agent.Usage{Input: 20}, 40},
		"a reply":              {wire.Reply{Usage: agent.Usage{Input: 400, Output: 100}}, agent.Usage{Input: 400, Output: 100}, 1300},
		"a lost one, a reply":  {wire.Reply{Charges: []agent.Charge{unknown}, Usage: agent.Usage{Input: 400, Output: 100}}, agent.Usage{Input: 410, Output: 100}, 1320},
		"a fallback's reply":   {wire.Reply{Model: "other", Usage: agent.Usage{Input: 400, Output: 100}, Cost: 5000}, agent.Usage{Input: 400, Output: 100}, 5000},
		"a cheap fallback's":   {wire.Reply{Model: "other", Usage: agent.Usage{Input: 400}, Cost: 1}, agent.Usage{Input: 400}, 20},
		"a fallback's refunds": {wire.Reply{Model: "other", Usage: agent.Usage{Input: -1}, Cost: math.MinInt64}, agent.Usage{Input: 10}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			s := &step{State: State{Phase: RunActive, Spec: &agent.Spec{Price: agent.Price{Input: 2 * agent.Dollar, Output: 5 * agent.Dollar}}, Turn: Turn{AskSeq: 5, Phase: TurnAsking}, Budget: Budget{RequestTokens: 10}}}
			s.chargeEstimate()
			s.Turn.Phase = TurnReady
			s.Budget.addBytes(300) // said since then
			require.Equal(t, agent.CodeStale, agent.CodeOf(s.chargeLateReply(5, wire.Reply{})), "it is to be made again later")
			require.NoError(t, s.chargeLateReply(5, c.late))
			require.Equal(t, c.used, s.Budget.Usage)
			require.Equal(t, c.cost, s.Budget.Cost)
		})
	}
}
