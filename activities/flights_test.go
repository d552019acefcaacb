package activities

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A run that gives up its steps ends them in its process without a heartbeat, and neither
// those of runs below it nor those of others.
func TestGivingUpEndsTheRunsOwnSteps(t *testing.T) {
	f := NewInFlight()
	own, leave := f.enter(t.Context(), "s", nil)
	defer leave()
	below, leave := f.enter(t.Context(), "s/clerk-1", nil)
	defer leave()
	other, leave := f.enter(t.Context(), "s2", nil)
	defer leave()
	f.CancelSession("s")
	require.ErrorIs(t, context.Cause(own), context.Canceled)
	require.True(t, stopped(own))
	require.NoError(t, below.Err())
	require.NoError(t, other.Err())
	again, leave := f.enter(t.Context(), "s", nil)
	defer leave()
	require.NoError(t, again.Err(), "a step that begins afterwards is wanted")
}

// A hold whose number can't be is not believed, from whomever it comes: it ends no step, and
// hides none of the true holds.
func TestAnInventedHoldEndsNoStep(t *testing.T) {
	for _, n := range []int{math.MaxInt, 2_000_000, 0, -1, math.MinInt} {
		f := NewInFlight()
		running, leave := f.enter(t.Context(), "s/b-1", []agent.HoldRef{{Session: "s", N: 3}})
		defer leave()
		f.Cancel(agent.HoldRef{Session: "s", N: n})
		require.NoError(t, running.Err(), n)
		next, leave := f.enter(t.Context(), "s/b-1", []agent.HoldRef{{Session: "s", N: 3}})
		defer leave()
		require.NoError(t, next.Err(), n)
		f.Cancel(agent.HoldRef{Session: "s", N: 4, Verb: agent.VerbInterrupt})
		require.Equal(t, &agent.HoldRef{Session: "s", N: 4, Verb: agent.VerbInterrupt}, heldBy(running), n)
		late, leave := f.enter(t.Context(), "s/b-1", []agent.HoldRef{{Session: "s", N: 3}})
		defer leave()
		require.Error(t, late.Err(), n)
	}
}
