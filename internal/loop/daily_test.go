package loop

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// What is granted and not given back never exceeds the limit, whatever workers claim, and
// all of it can be had.
func TestADailyAccountGrantsItsLimit(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		limits := agent.DailyLimits{Tokens: rapid.Int64Range(0, 1e7).Draw(t, "tokens"), CostUSD: agent.USD(rapid.Int64Range(0, 1e9).Draw(t, "cost"))}
		a, held := DailyAccount{}, make([]wire.DailyGrant, 4)
		for range rapid.IntRange(1, 300).Draw(t, "claims") {
			i := rapid.IntRange(0, len(held)-1).Draw(t, "worker")
			c := wire.DailyClaim{Limits: limits, Day: held[i].Day, Closing: rapid.IntRange(0, 9).Draw(t, "closing") == 0}
			if rapid.Bool().Draw(t, "all is left") {
				c.Remaining = held[i].Granted
			}
			a, held[i] = a.Claim(noon, c)
			require.LessOrEqual(t, a.Granted.Tokens, limits.Tokens)
			require.LessOrEqual(t, a.Granted.CostUSD, limits.CostUSD)
		}
		if limits.Tokens == 0 {
			return
		}
		for range 2000 { // a worker that uses all that it gets
			a, _ = a.Claim(noon, wire.DailyClaim{Limits: agent.DailyLimits{Tokens: limits.Tokens}})
		}
		require.Equal(t, limits.Tokens, a.Granted.Tokens)
	})
}

func TestADailyAccountBeginsAnew(t *testing.T) {
	at := func(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC) }
	limits := agent.DailyLimits{Tokens: 100}
	a, g := DailyAccount{}.Claim(at(21, 23), wire.DailyClaim{Limits: limits})
	require.Equal(t, wire.DailyGrant{Day: "2026-11-21", Granted: agent.DailyLimits{Tokens: 2}}, g)
	a, g = a.Claim(at(21, 23), wire.DailyClaim{Limits: limits, Day: g.Day, Remaining: agent.DailyLimits{Tokens: -98}})
	require.Equal(t, wire.DailyGrant{Day: "2026-11-21", UsedUp: agent.CodeLimitTokens}, g, "calls used more than was granted")
	a, g = a.Claim(at(22, 0), wire.DailyClaim{Limits: limits, Day: g.Day, Remaining: agent.DailyLimits{Tokens: -50}})
	require.Equal(t, wire.DailyGrant{Day: "2026-11-22", Granted: agent.DailyLimits{Tokens: 2}}, g, "yesterday's calls are yesterday's")
	a, _ = a.Claim(at(21, 23), wire.DailyClaim{Limits: limits})
	require.Equal(t, DailyAccount{Day: "2026-11-22", Granted: agent.DailyLimits{Tokens: 3}}, a, "a clock that goes back begins no day")
}

// A claim that comes again, since its answer was lost, is answered as the first, also by the
// account's next execution.
func TestADailyClaimIsMadeOnce(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	c := wire.DailyClaim{ID: "a", Limits: agent.DailyLimits{Tokens: 100_000}}
	a, first := DailyAccount{}.Claim(noon, c)
	for i := range maxSettled - 1 {
		a, _ = a.Claim(noon, wire.DailyClaim{ID: strconv.Itoa(i), Limits: c.Limits})
	}
	require.Len(t, a.Settled, maxSettled)
	raw, err := json.Marshal(a)
	require.NoError(t, err)
	require.Less(t, len(raw), 64<<10)
	carried := DailyAccount{}
	require.NoError(t, json.Unmarshal(raw, &carried))
	next, again := carried.Claim(noon, c)
	require.Equal(t, first, again)
	require.Equal(t, a, next)
}

// A clock that was wrong by days for a moment does not keep the next days from beginning.
func TestADailyAccountGetsOverAWrongClock(t *testing.T) {
	limits := agent.DailyLimits{Tokens: 100}
	a, _ := DailyAccount{}.Claim(time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC), wire.DailyClaim{Limits: limits})
	a, g := a.Claim(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), wire.DailyClaim{Limits: limits})
	require.Equal(t, "2026-11-21", g.Day)
	require.EqualValues(t, 2, a.Granted.Tokens)
}
