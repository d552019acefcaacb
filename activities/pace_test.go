package activities

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A store that is too slow for runs that rest is left alone by those for a while, and one
// that is too slow for a start by all; also where it never comes back.
func TestASlowStoreIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p StorePace
		asked, forever := 0, make(chan struct{})
		answersIn := func(d time.Duration) func(context.Context) error {
			return func(ctx context.Context) error {
				asked++
				select {
				case <-time.After(d):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		require.NoError(t, p.withRestTimeout(t.Context(), answersIn(localRestTimeout/2)))
		require.ErrorIs(t, p.withRestTimeout(t.Context(), answersIn(localRestTimeout*3/2)), errStoreSlow)
		require.ErrorIs(t, p.withRestTimeout(t.Context(), answersIn(0)), errStoreSlow)
		require.Equal(t, 2, asked, "the last one did not ask")
		require.NoError(t, p.withShortTimeout(t.Context(), answersIn(localRestTimeout*3/2)), "a start has more time")
		<-time.After(slowFor) // skipped time
		require.NoError(t, p.withRestTimeout(t.Context(), answersIn(0)))

		go func() {
			_ = p.withShortTimeout(t.Context(), func(context.Context) error { <-forever; return nil })
		}()
		<-time.After(localStoreTimeout)
		synctest.Wait()
		asked = 0
		require.ErrorIs(t, p.withShortTimeout(t.Context(), answersIn(0)), errStoreSlow)
		require.ErrorIs(t, p.withRestTimeout(t.Context(), answersIn(0)), errStoreSlow)
		require.Zero(t, asked)
		close(forever)
	})
}
