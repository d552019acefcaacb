package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A second after an interrupt is said, no tool and no model works anywhere in a
// tree of three levels, and none begins any more (HX-16, HX-77, HX-78).
func TestATreeStopsWithinASecond(t *testing.T) {
	// Not beside other tests: it measures.
	f := plant(t, 2, 2)
	run := f.grown(t, 7, 3)
	said := time.Now()
	_, err := run.Interrupt(t.Context(), "", nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return f.busy.Load() == 0 }, patience, time.Millisecond)
	require.Less(t, time.Since(said), time.Second)
	f.still(t, run, 7, agent.StatusSuspended)
	require.Len(t, f.script.Requests(), 7)
}
