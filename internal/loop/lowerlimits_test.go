package loop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A start only lowers what the definition has.
func TestAStartLowersLimits(t *testing.T) {
	started := lowerLimits(agent.Definition{}.WithDefaults().Limits, agent.Limits{Turns: 200})
	require.Equal(t, []int{200, 50}, []int{started.Turns, started.OwnTurns})
}
