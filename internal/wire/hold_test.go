package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Forged holds, each as far above the last as is believed, end far below the numbers that an order may have.
func TestForgedHoldsEndBelowThoseOfOrders(t *testing.T) {
	known := 0
	for step := maxUnheard; step > 0; {
		if !PlausibleHold(agent.HoldRef{N: known + step}, known) {
			step /= 10
			continue
		}
		known += step
	}
	require.Equal(t, maxMetLate, known)
	require.True(t, PlausibleHold(agent.HoldRef{N: MaxMet + 1}, MaxMet), "the next real one is believed")
}
