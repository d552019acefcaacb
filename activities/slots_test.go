package activities

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// However steps come, no more of a lane are in flight than it has slots: a request for
// work may bring one that can't wait, so a slot is kept for it.
func TestSlotsBoundALane(t *testing.T) {
	s := NewSlots(2)
	require.True(t, s.TryReserve())
	require.True(t, s.TryAcquire())
	require.False(t, s.TryAcquire(), "the other one is for what the request brings")
	require.False(t, s.TryReserve(), "there is no slot for a second request")
	s.ReservationUsed()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Reserve(over), context.Canceled)
	asked := make(chan error)
	go func() { asked <- s.Reserve(t.Context()) }()
	s.Release()
	require.NoError(t, <-asked)
	require.False(t, s.TryAcquire())
	s.ReservationUnused()
	require.True(t, s.TryAcquire())

	var unbounded *Slots
	require.True(t, unbounded.TryAcquire())
	unbounded.Release()
}
