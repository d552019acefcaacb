package activities

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/wire"
)

// ledger stands for the account of a task queue.
type ledger struct {
	mu      sync.Mutex
	account loop.DailyAccount
	claims  int
	away    bool
}

func (l *ledger) claim(_ context.Context, c wire.DailyClaim) (g wire.DailyGrant, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.claims++; l.away {
		return g, errors.New("nobody answers")
	}
	l.account, g = l.account.Claim(time.Now(), c)
	return g, nil
}

// asked is how many claims there were, and granted what the account says of tokens.
func (l *ledger) asked() (claims int, granted int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.claims, l.account.Granted.Tokens
}

// Two workers use what a day allows, and no more than one reply each beyond; then calls are
// told to wait, and the next day they begin again.
func TestADailyLimitBoundsAllWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		limits := agent.DailyLimits{Tokens: 10_000, CostUSD: agent.Dollar}
		workers := []*DailyBudget{{Limits: limits, Queue: "q", Claim: l.claim}, {Limits: limits, Queue: "q", Claim: l.claim}}
		var log bytes.Buffer
		workers[0].Logger = slog.New(slog.NewTextHandler(&log, nil))
		const reply = 90
		used, err := int64(0), error(nil)
		for i := 0; err == nil; i++ {
			w := workers[i%2]
			if err = w.begin(t.Context()); err == nil {
				w.end(agent.DailyLimits{Tokens: reply, CostUSD: 10})
				used += reply
			}
			require.Less(t, i, 1000)
		}
		require.InDelta(t, limits.Tokens, used, 3*reply)
		claims, _ := l.asked()
		require.Less(t, claims, 200)
		var e *agent.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, agent.CodeLimitTokens, e.Code)
		require.True(t, e.Retryable)
		require.Equal(t, maxDailyWait, e.RetryAfter)
		require.Error(t, workers[0].begin(t.Context()))

		<-time.After(24*time.Hour - time.Minute) // skipped time
		require.ErrorAs(t, workers[0].begin(t.Context()), &e)
		require.Equal(t, time.Minute, e.RetryAfter.Round(time.Minute), "it is nearly midnight")
		<-time.After(time.Minute)
		require.NoError(t, workers[0].begin(t.Context()))
		workers[0].end(agent.DailyLimits{})
		// It began at midnight of 2000-01-01, when time begins here.
		require.Equal(t, 1, strings.Count(log.String(), `level=WARN msg="a daily limit is used up: model calls wait until the new day begins, or somebody raises the limit" task_queue=q limit="10000 tokens" code=limit_tokens begins=2000-01-02T00:00:00.000Z`), log.String())
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	})
}

// What a worker does not use is another one's a minute later, or as soon as it stops.
func TestADailyPartIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		d := &DailyBudget{Limits: agent.DailyLimits{Tokens: 10_000}, Claim: l.claim}
		require.NoError(t, d.begin(t.Context()))
		require.NoError(t, d.begin(t.Context()))
		d.end(agent.DailyLimits{Tokens: 7})
		d.GiveBack(t.Context())
		<-time.After(2 * returnAfter)
		granted := func() int64 { _, n := l.asked(); return n }
		require.EqualValues(t, 200, granted(), "a call is under way")
		d.end(agent.DailyLimits{Tokens: 8})
		<-time.After(2 * returnAfter)
		synctest.Wait()
		require.EqualValues(t, 15, granted())
		require.NoError(t, d.begin(t.Context()))
		d.end(agent.DailyLimits{Tokens: 5})
		d.GiveBack(t.Context())
		require.EqualValues(t, 20, granted())
	})
}

// An account that does not answer lets nothing begin.
func TestADailyLimitFailsClosed(t *testing.T) {
	l := &ledger{away: true}
	d := &DailyBudget{Limits: agent.DailyLimits{Tokens: 10_000}, Claim: l.claim}
	var e *agent.Error
	require.ErrorAs(t, d.begin(t.Context()), &e)
	require.Equal(t, agent.CodeUnreachable, e.Code)
	require.Equal(t, time.Minute, e.RetryAfter)
	require.NoError(t, (*DailyBudget)(nil).begin(t.Context()), "no limit")
}
