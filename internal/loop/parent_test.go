package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// The parent hears of a suspension again if it is another, of another kind or owner, asks
// for more, or if half of what is open is decided.
func TestWhatIsNewsToTheParent(t *testing.T) {
	p, n := Parent{}, agent.SuspensionSummary{ID: "s-1", Kind: agent.SuspensionInputRequired, Owner: agent.OwnerOperator, Open: 8}
	require.True(t, p.isNews(n))
	p.reported(n)
	for name, c := range map[string]struct {
		change func(*agent.SuspensionSummary)
		news   bool
	}{
		"the same":     {func(*agent.SuspensionSummary) {}, false},
		"another":      {func(n *agent.SuspensionSummary) { n.ID = "s-2" }, true},
		"held":         {func(n *agent.SuspensionSummary) { n.Kind = agent.SuspensionHeld }, true},
		"more":         {func(n *agent.SuspensionSummary) { n.Open = 9 }, true},
		"a few fewer":  {func(n *agent.SuspensionSummary) { n.Open = 5 }, false},
		"half is left": {func(n *agent.SuspensionSummary) { n.Open = 4 }, true},
	} {
		now := n
		c.change(&now)
		require.Equal(t, c.news, p.isNews(now), name)
	}
	p.reportedResumed()
	require.True(t, p.isNews(n))
}

// A run that rests looks for its parent ever more seldom.
func TestLooksForTheParent(t *testing.T) {
	p, since := Parent{}, time.Unix(0, 0)
	for rested, wait := range map[time.Duration]time.Duration{time.Second: parentCheckFirst, time.Hour: time.Hour, 100 * time.Hour: parentCheckMax} {
		p.startCheck()
		p.parentAlive(since, since.Add(rested))
		require.False(t, p.Checking)
		require.Equal(t, wait, p.CheckAt.Sub(since.Add(rested)))
	}
}
