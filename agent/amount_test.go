package agent

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/amount"
)

// Whatever tokens a model claims, they never cost less than fewer, and never less than nothing.
func TestNoPriceOverflows(t *testing.T) {
	p := Price{Input: 3 * Dollar, Output: 15 * Dollar, CacheRead: Dollar, CacheWrite: Dollar}
	require.Equal(t, USD(1), p.Of(Usage{CacheRead: 1, Input: 1}), "rounded up")
	require.Equal(t, 18*Dollar, p.Of(Usage{Input: 1_000_000, Output: 1_000_000}))
	require.Equal(t, 10_500_000*Dollar, p.Of(Usage{Input: 3_500_000_000_000}))
	require.Equal(t, USD(0), p.Of(Usage{Input: -1, Output: -1_000_000, CacheRead: math.MinInt64}))
	require.Equal(t, USD(amount.Max), p.Of(Usage{Input: math.MaxInt64, Output: math.MaxInt64, CacheRead: 1}))
	require.Equal(t, USD(amount.Max), Price{Input: math.MaxInt64}.Of(Usage{Input: math.MaxInt64}))
	require.Equal(t, USD(0), Price{Input: -1}.Of(Usage{Input: 5_000_000}))
	last := USD(0)
	for n := int64(1); n > 0; n *= 2 {
		cost := p.Of(Usage{Input: n, Output: n})
		require.GreaterOrEqual(t, cost, last)
		last = cost
	}
}

// A sum of tallies neither overflows nor falls, and is one that can be written and read.
func TestNoSumOverflows(t *testing.T) {
	most := Tally{math.MaxInt, math.MaxInt, Usage{math.MaxInt64, math.MaxInt64, 1, 1, 1, math.MaxInt64}, math.MaxInt64, Estimate{math.MaxInt64, math.MaxInt64}}
	sum := most.Add(most)
	require.Equal(t, []int64{amount.Max, amount.Max, amount.Max, 2}, []int64{int64(sum.Agents), int64(sum.Turns), int64(sum.Cost), sum.Usage.CacheRead})
	require.Equal(t, int64(2*amount.Max), sum.Usage.Total())
	require.Equal(t, int64(amount.Max), sum.Usage.Searches)
	require.Equal(t, 10*Dollar/1000*3, Price{Search: 10 * Dollar}.Of(Usage{Searches: 3}))
	less := Tally{-1, -1, Usage{Input: -5}, -1, Estimate{Tokens: -1}}
	require.Equal(t, Tally{Turns: 3}, Tally{Turns: 3}.Add(less))
	raw, err := sum.Cost.MarshalJSON()
	require.NoError(t, err)
	var back USD
	require.NoError(t, back.UnmarshalJSON(raw))
	require.Equal(t, sum.Cost, back)
}
