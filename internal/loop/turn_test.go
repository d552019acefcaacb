package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A turn is in flight while the model is at work; no calls are made without a reply.
func TestATurnInFlight(t *testing.T) {
	at := time.Unix(1, 0)
	turn := Turn{Phase: TurnReady}
	turn.next()
	for _, c := range []struct {
		name     string
		do       func()
		phase    TurnPhase
		inFlight bool
	}{
		{"asked", func() { turn.ask(at, 3) }, TurnAsking, true},
		{"its calls are made", turn.work, TurnWorking, false},
		{"over", turn.end, TurnReady, false},
		{"over once more", turn.end, TurnReady, false},
		{"summed up", func() { turn.askSummary(at, 9, SummaryOfAll) }, TurnSummarizing, true},
	} {
		c.do()
		require.Equal(t, []any{c.phase, c.inFlight}, []any{turn.Phase, turn.inFlight()}, c.name)
	}
	require.Panics(t, turn.work, "no reply has come")
	require.Equal(t, int64(9), turn.AskSeq)
}

// What the model does wrong counts in a row: a reply that can be used ends one row, and a
// call another.
func TestATurnCountsInARow(t *testing.T) {
	turn := Turn{}
	require.Equal(t, []bool{true, false}, []bool{turn.countUseless(), turn.countUseless()})
	turn.setText("hm")
	require.True(t, turn.countUseless())
	require.Equal(t, []bool{true, false}, []bool{turn.nudge(1), turn.nudge(1)})
	turn.acted()
	require.True(t, turn.nudge(1))
	require.Equal(t, []int{1, 2, 1}, []int{turn.countRepeat(0, "a"), turn.countRepeat(1, "a"), turn.countRepeat(0, "b")})
	turn.countRepeat(0, "b")
	turn.countRepeat(1, "b")
	require.Equal(t, Repeat{Digest: "b", Count: 3, Replies: 2}, turn.Repeat)
}
