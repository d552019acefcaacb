package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A stop gives tools half of its time, and an outcome that other states share is not
// changed by what follows.
func TestAnEndIsReached(t *testing.T) {
	e, at := End{}, time.Unix(0, 0)
	e.startStop(agent.StopCommand{Deadline: agent.Duration(time.Minute)}, at)
	require.Equal(t, []any{at.Add(30 * time.Second), agent.ReasonRequested}, []any{e.Stopping.ToolsUntil, e.Stopping.Reason})
	require.Equal(t, []bool{false, true}, []bool{e.Stopping.over(at), e.Stopping.over(at.Add(time.Minute))})
	e.startGrace(at, "stopped")
	require.Equal(t, "stopped", e.endGrace().Reason)
	require.Nil(t, e.endGrace())
	o := &agent.Outcome{Status: agent.StatusCompleted}
	e.setOutcome(o)
	e.setFailure(agent.Errorf(agent.CodeStoreUnavailable, "no"))
	require.Equal(t, []agent.Status{agent.StatusCompleted, agent.StatusFailed}, []agent.Status{o.Status, e.Outcome.Status})
}
