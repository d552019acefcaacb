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
