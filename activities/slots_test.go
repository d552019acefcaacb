package activities

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// However steps come, no more of a lane are in flight than it has slots: a request for
// work may bring one, and one that comes when its slot was taken meanwhile waits.
func TestSlotsBoundALane(t *testing.T) {
	s := NewSlots(2)
	require.True(t, s.TryAsk())
	require.True(t, s.TryTake(), "a request that has brought nothing yet takes no slot")
	require.False(t, s.TryAsk(), "there is no slot for a second request")
	require.True(t, s.TryTake())
	require.False(t, s.TryTake())

	s.Got() // a third step
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.settle(over), context.Canceled, "it waits")
	settled := make(chan error)
	go func() { settled <- s.settle(t.Context()) }()
	s.Free()
	require.NoError(t, <-settled)
	require.False(t, s.TryTake())
	s.Free()
	require.True(t, s.TryAsk())
	require.ErrorIs(t, s.Ask(over), context.Canceled)
	s.GotNone()
	require.NoError(t, s.Ask(t.Context()))

	var unbounded *Slots
	require.True(t, unbounded.TryTake())
	unbounded.Free()
}
