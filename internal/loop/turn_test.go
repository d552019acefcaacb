package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A turn is in flight while the model is at work; no calls are made without a reply.
func TestATurnInFlight(t *testing.T) {
	at := time.Unix(1, 0)
	turn := Turn{Phase: Ready}
	turn.next()
	for _, c := range []struct {
		name     string
		do       func()
		phase    TurnPhase
		inFlight bool
	}{
		{"asked", func() { turn.ask(at, 3) }, Asking, true},
		{"its calls are made", turn.work, Working, false},
		{"over", turn.end, Ready, false},
		{"over once more", turn.end, Ready, false},
		{"summed up", func() { turn.sum(at, 9, SumFresh) }, Summing, true},
	} {
		c.do()
		require.Equal(t, []any{c.phase, c.inFlight}, []any{turn.Phase, turn.inFlight()}, c.name)
	}
	turn.end()
	require.Panics(t, turn.work, "no reply has come")
	require.Equal(t, int64(9), turn.Ask)
}

// What the model does wrong counts in a row: a reply that can be used ends one row, and a
// call another.
func TestATurnCountsInARow(t *testing.T) {
	turn := Turn{}
	require.Equal(t, []bool{true, false}, []bool{turn.useless(), turn.useless()})
	turn.said("hm")
	require.True(t, turn.useless())
	require.Equal(t, []bool{true, false}, []bool{turn.nudge(1), turn.nudge(1)})
	turn.acts()
	require.True(t, turn.nudge(1))
	require.Equal(t, []int{1, 2, 1}, []int{turn.repeats("a"), turn.repeats("a"), turn.repeats("b")})
}
