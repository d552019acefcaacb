package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each ready-made policy is valid, has instructions of its own, and keeps the defaults (HA-84).
func TestReadyMadeCompactions(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range []CompactionPolicy{CompactForBugFix(), CompactKeepingTestFailures(), CompactKeepingPlan()} {
		require.NoError(t, p.Check())
		require.NotEmpty(t, p.Instructions)
		require.False(t, seen[p.Instructions])
		seen[p.Instructions] = true
		full := p.WithDefaults()
		require.Equal(t, []any{CompactionHybrid, 0.8, 10}, []any{full.Strategy, full.Threshold, full.KeepLast})
	}
}
