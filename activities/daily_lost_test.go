package activities

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// An account that hangs keeps a call for as long as one claim takes, however many calls
// wait, and one that is given up for no longer than its context.
func TestCallsWaitTogetherForADailyPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims := 0
		d := &DailyBudget{Limits: agent.DailyLimits{Tokens: 10_000}, Claim: func(ctx context.Context, _ wire.DailyClaim) (g wire.DailyGrant, err error) {
			claims++
			<-ctx.Done()
			return g, ctx.Err()
		}}
		began := time.Now()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { require.Error(t, d.begin(t.Context())) })
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.Error(t, d.begin(ctx))
			require.LessOrEqual(t, time.Since(began), time.Second)
		})
		all.Wait()
		require.LessOrEqual(t, time.Since(began), 2*claimTimeout)
		require.LessOrEqual(t, claims, 2)
	})
}

// An account that has done what it was asked, and whose answer is lost, grants once.
func TestADailyClaimWhoseAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, lose := &ledger{}, true
		d := &DailyBudget{Limits: agent.DailyLimits{Tokens: 10_000}, Claim: func(ctx context.Context, c wire.DailyClaim) (wire.DailyGrant, error) {
			g, err := l.claim(ctx, c)
			if lose {
				return wire.DailyGrant{}, errors.New("lost")
			}
			return g, err
		}}
		granted := func() int64 { _, n := l.asked(); return n }
		for range 5 {
			require.Error(t, d.begin(t.Context()))
			<-time.After(time.Minute) // as the call waits
		}
		require.EqualValues(t, 200, granted(), "one part")
		lose = false
		require.NoError(t, d.begin(t.Context()))
		require.EqualValues(t, 200, granted())
		lose = true
		d.end(agent.DailyLimits{Tokens: 50})
		<-time.After(2 * returnAfter)
		synctest.Wait()
		require.EqualValues(t, 50, granted(), "the rest was given back, and nobody has heard so")
		lose = false
		require.NoError(t, d.begin(t.Context()))
		d.end(agent.DailyLimits{Tokens: 100})
		d.GiveBack(t.Context())
		require.EqualValues(t, 150, granted(), "all that was used")
	})
}

// A process whose clock is ahead of the server's at midnight continues with what the account
// has of the day before.
func TestADailyLimitWhereClocksDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		d := &DailyBudget{Limits: agent.DailyLimits{Tokens: 10_000}, Claim: func(_ context.Context, c wire.DailyClaim) (g wire.DailyGrant, err error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.claims++
			l.account, g = l.account.Claim(time.Now().Add(-5*time.Second), c)
			return g, nil
		}}
		<-time.After(time.Until(time.Now().Truncate(24 * time.Hour).Add(24*time.Hour - time.Second)))
		for range 20 { // over midnight, by both clocks
			require.NoError(t, d.begin(t.Context()))
			d.end(agent.DailyLimits{Tokens: 10})
			<-time.After(time.Second)
		}
		claims, _ := l.asked()
		require.Less(t, claims, 5)
	})
}

// Calls that use more than a part while another part is claimed do not make the limit one
// that is used up.
func TestADailyPartThatIsUsedAsItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, meanwhile := &ledger{}, []int64{500, 500}
		d := &DailyBudget{Limits: agent.DailyLimits{Tokens: 10_000}}
		d.Claim = func(ctx context.Context, c wire.DailyClaim) (wire.DailyGrant, error) {
			if n := len(meanwhile); n > 0 && c.Day != "" {
				d.end(agent.DailyLimits{Tokens: meanwhile[n-1]})
				meanwhile = meanwhile[:n-1]
			}
			return l.claim(ctx, c)
		}
		for range 3 {
			require.NoError(t, d.begin(t.Context()))
		}
		d.end(agent.DailyLimits{Tokens: 300})
		require.NoError(t, d.begin(t.Context()))
	})
}

// Where a limit is used up, a process asks for all its calls once a minute.
func TestAUsedUpDailyLimitIsAskedForSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		d := &DailyBudget{Limits: agent.DailyLimits{Tokens: 10}, Claim: l.claim}
		require.NoError(t, d.begin(t.Context()))
		d.end(agent.DailyLimits{Tokens: 20})
		before, _ := l.asked()
		for range 100 {
			require.ErrorIs(t, d.begin(t.Context()), agent.CodeLimitTokens)
		}
		claims, _ := l.asked()
		require.LessOrEqual(t, claims-before, 1)
		<-time.After(2 * time.Minute)
		d.Limits.Tokens = 1000 // it was raised
		require.NoError(t, d.begin(t.Context()))
		d.end(agent.DailyLimits{})
	})
}
