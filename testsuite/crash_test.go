package testsuite

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A story whose number of steps varies, as that of a flow with a quorum, is repeated if it ends before
// the step of its crash. If it always does, that crash is skipped, and not failed.
func TestEveryCrashOfAStoryThatVaries(t *testing.T) {
	var crashed atomic.Int32
	var short sync.Map // crashes of the fourth step whose first story was too short
	t.Run("every", func(t *testing.T) {
		EveryCrash(t, func(_ testing.TB, c *Crash) any {
			steps := 3
			switch {
			case c.Step == 0:
				steps = 5
			case c.Step == 4: // it comes up the second time
				if _, again := short.LoadOrStore(c.When, true); again {
					steps = 4
				}
			}
			for range steps {
				if c.startStep("step") {
					c.happened = true
					crashed.Add(1)
				}
			}
			return "done"
		})
	})
	require.False(t, t.Failed())
	require.EqualValues(t, 3*3+3, crashed.Load(), "each step that came up has its three crashes")
}
