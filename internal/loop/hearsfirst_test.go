package loop

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A daemon that was idle takes the first of several messages into its turn, so that the others have room: only
// what came before the run began is taken together.
func TestAnIdleDaemonTakesMessagesOneByOne(t *testing.T) {
	p := played(t, `started {"input":{}}`, `opened {"daemon":{}}`, "sealed", "after 1s")
	require.Zero(t, p.state.ownTurns())
	s := p.state
	for i := range 3 {
		next, _, err := Step(s, Moment{At: p.now, Revision: Revision, SignalsWaiting: i < 2}, CommandReceived{Command: agent.SendCommand{Text: strings.Repeat("x", 100<<10)}})
		require.NoError(t, err, "message %d", i+1)
		s = next
	}
	require.Equal(t, 1, s.ownTurns())
	require.Greater(t, s.Suspensions.SuspendedFor, time.Duration(0))
}
