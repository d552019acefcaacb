package mcp

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// resting is the other end of a link that nobody uses.
type resting struct {
	peer
	stopped *atomic.Bool
}

func (resting) leave(error)   {}
func (resting) broken() error { return nil }

func (r resting) stop() bool {
	r.stopped.Store(true)
	return true
}

// What a session has not called for ten minutes is ended, and not before: a call in
// between begins the time anew, and one that still runs has all the time it wants.
func TestWhatRestsIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ana := New("tickets", []string{"true"}, nil), owner{session: "ana"}
		var stopped atomic.Bool
		use := func() *slot {
			where, err := s.take(ana)
			require.NoError(t, err)
			if where.live == nil {
				where.live = &link{peer: resting{stopped: &stopped}}
			}
			return where
		}
		first := use()
		s.release(ana, first)
		<-time.After(idleTime - time.Minute)
		require.Same(t, first, use())
		s.release(ana, first)
		<-time.After(2 * time.Minute)
		require.False(t, stopped.Load(), "it was used since")
		require.Same(t, first, use())
		<-time.After(2 * idleTime)
		require.False(t, stopped.Load(), "a call runs")
		s.release(ana, first)
		<-time.After(idleTime - time.Second)
		require.False(t, stopped.Load())
		<-time.After(2 * time.Second)
		synctest.Wait()
		require.True(t, stopped.Load())
		require.Empty(t, s.slots)
		require.NotSame(t, first, use())
		s.release(ana, s.slots[ana])
		<-time.After(2 * idleTime)
	})
}
