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
	p, n := Parent{}, agent.SuspensionNote{ID: "s-1", Kind: agent.InputRequired, Owner: agent.OwnedByOperator, Open: 8}
	require.True(t, p.news(n))
	p.tells(n)
	for name, c := range map[string]struct {
		change func(*agent.SuspensionNote)
		news   bool
	}{
		"the same":     {func(*agent.SuspensionNote) {}, false},
		"another":      {func(n *agent.SuspensionNote) { n.ID = "s-2" }, true},
		"held":         {func(n *agent.SuspensionNote) { n.Kind = agent.Paused }, true},
		"more":         {func(n *agent.SuspensionNote) { n.Open = 9 }, true},
		"a few fewer":  {func(n *agent.SuspensionNote) { n.Open = 5 }, false},
		"half is left": {func(n *agent.SuspensionNote) { n.Open = 4 }, true},
	} {
		now := n
		c.change(&now)
		require.Equal(t, c.news, p.news(now), name)
	}
	p.goesOn()
	require.True(t, p.news(n))
}

// A run that rests looks for its parent ever more seldom.
func TestLooksForTheParent(t *testing.T) {
	p, since := Parent{}, time.Unix(0, 0)
	for rested, wait := range map[time.Duration]time.Duration{time.Second: leaseFirst, time.Hour: time.Hour, 100 * time.Hour: leaseMost} {
		p.looks()
		p.looked(since, since.Add(rested))
		require.False(t, p.Leasing)
		require.Equal(t, wait, p.LeaseAt.Sub(since.Add(rested)))
	}
}
