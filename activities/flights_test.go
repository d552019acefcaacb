package activities

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A run that gives up its steps ends them in its process without a heartbeat, and neither
// those of runs below it nor those of others.
func TestGivingUpEndsTheRunsOwnSteps(t *testing.T) {
	f := NewFlights()
	own, leave := f.enter(t.Context(), "s", nil)
	defer leave()
	below, leave := f.enter(t.Context(), "s/clerk-1", nil)
	defer leave()
	other, leave := f.enter(t.Context(), "s2", nil)
	defer leave()
	f.GiveUp("s")
	require.ErrorIs(t, context.Cause(own), context.Canceled)
	require.True(t, stopped(own))
	require.NoError(t, below.Err())
	require.NoError(t, other.Err())
	again, leave := f.enter(t.Context(), "s", nil)
	defer leave()
	require.NoError(t, again.Err(), "a step that begins afterwards is wanted")
}
