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
	require.True(t, s.TryAsk())
	require.True(t, s.TryTake())
	require.False(t, s.TryTake(), "the other one is for what the request brings")
	require.False(t, s.TryAsk(), "there is no slot for a second request")
	s.Got()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Ask(over), context.Canceled)
	asked := make(chan error)
	go func() { asked <- s.Ask(t.Context()) }()
	s.Free()
	require.NoError(t, <-asked)
	require.False(t, s.TryTake())
	s.GotNone()
	require.True(t, s.TryTake())

	var unbounded *Slots
	require.True(t, unbounded.TryTake())
	unbounded.Free()
}
