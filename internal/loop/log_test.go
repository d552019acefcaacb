package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// What is stored leaves the tail; what came meanwhile stays, and a store that fails is
// tried again ever more seldom.
func TestALogIsSealed(t *testing.T) {
	l, at := Log{}, time.Unix(0, 0)
	for n := range int64(3) {
		l.append(agent.Event{Seq: n + 1}, 10)
	}
	l.startSeal()
	require.False(t, l.canSeal(), "one at a time")
	l.append(agent.Event{Seq: 4}, 10)
	l.sealed(Sealed{Head: "h", Version: 1, Seq: 3}, false)
	require.Equal(t, []any{int64(3), 10, "h", true, true}, []any{l.storedTo(), l.Bytes, l.Head, l.hasUnsealed(), l.canSeal()})
	for _, wait := range []time.Duration{sealRetryFirst, 2 * sealRetryFirst, 4 * sealRetryFirst} {
		l.startSeal()
		l.cancelSeal()
		l.retry(agent.Errorf(agent.CodeWorkerLost, "no"), at)
		require.True(t, l.losesWorkers())
		require.False(t, l.canSeal())
		l.tick(at.Add(wait - 1))
		require.False(t, l.canSeal())
		l.tick(at.Add(wait))
		require.True(t, l.canSeal())
	}
	l.sealed(Sealed{Seq: 4}, false)
	require.Equal(t, []any{false, 0, false}, []any{l.hasUnsealed(), l.Tries, l.losesWorkers()})
	require.Equal(t, int64(4), l.Fence.N, "each write has a number")
}

// A store that fails for a week is given up, and the run was never suspended: it fails, and nothing can be
// resumed (OA-61). A store that comes back before is as good as new (OA-62).
func TestAStoreThatStaysAwayIsGivenUp(t *testing.T) {
	for _, back := range []bool{false, true} {
		p := played(t, `begin go`, `opened {"tools":["ask_user"]}`, `calls ask_user {"question":"Where to?"}`)
		began := p.now
		for range maxSealTries {
			p.lines(`not-sealed store_unavailable`)
			require.Equal(t, RunActive, p.state.Phase)
			p.lines(`after 5m`, `timer`)
		}
		require.InDelta(t, 7*24, p.now.Sub(began).Hours(), 2)
		if back {
			p.lines(`sealed`)
			require.Zero(t, p.state.Log.Tries)
			require.True(t, p.state.Suspensions.atRest())
			continue
		}
		p.lines(`not-sealed store_unavailable`)
		require.Equal(t, RunEnding, p.state.Phase)
		p.lines(`not-sealed store_unavailable`)
		require.Equal(t, RunEnded, p.state.Phase)
		require.Equal(t, agent.CodeStoreUnavailable, p.state.End.Outcome.Error.Code)
		_, _, err := Step(p.state, Moment{At: p.now}, p.input("resume", "{}"))
		require.ErrorIs(t, err, agent.CodeClosed)
	}
}

// Each failed attempt makes the history longer. One that is nearly full ends them, but not within the first
// minutes: the store may be back at once.
func TestAHistoryThatIsNearlyFullEndsTheAttempts(t *testing.T) {
	p := played(t, `begin go`, `opened {"tools":["ask_user"]}`, `calls ask_user {"question":"Where to?"}`)
	p.near = true
	for range fewSealTries {
		p.lines(`not-sealed timeout`)
		require.Equal(t, RunActive, p.state.Phase)
		p.lines(`after 5m`, `timer`)
	}
	p.lines(`not-sealed timeout`)
	require.Equal(t, RunEnding, p.state.Phase)
	require.ErrorIs(t, p.state.End.Outcome.Err(), agent.CodeStoreUnavailable)
	require.ErrorContains(t, p.state.End.Outcome.Err(), "21 attempts in a row")
}
