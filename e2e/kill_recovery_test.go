package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
)

// A run that is unable to do its task hands off with its sub-agents, though the worker of all of
// them is killed with -9 meanwhile. It fails with its code, and the handoff says why (PA-70, PA-71).
func TestAHandoffAfterAFailureOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	c := newCell(t, "kill-recovery")
	run, err := c.Start(t.Context(), "reporter", "report", nil)
	require.NoError(t, err)
	w := startWorker(t, c.addr, c.queue, c.dir)
	c.await(t, run, agent.EventCallDone, agent.ReturnUnableTool)
	kill(w) // the sub-agent still works: its tool waits until it is stopped
	startWorker(t, c.addr, c.queue, c.dir)
	o := waitFor(t, run)
	require.Equal(t, agent.StatusFailed, o.Status)
	require.Equal(t, "unable", o.Reason)
	require.ErrorIs(t, o.Err(), agent.CodeUnable)
	h := o.Handoff
	require.NotNil(t, h)
	require.Equal(t, agent.StatusFailed, h.Status)
	require.Equal(t, []string{"no key for the bank"}, h.Blockers)
	require.Equal(t, "Nobody can pay without it.", h.Rationale)
	require.Len(t, h.Children, 1)
	require.Equal(t, "helper", h.Children[0].Agent)
	require.Equal(t, agent.StatusStopped, h.Children[0].Status)
	require.Equal(t, "half of it", h.Children[0].Summary)
}

// await waits until the run's log has an event of that type about a tool.
func (c *cell) await(t *testing.T, run *client.Run, kind agent.EventType, tool string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for e, err := range c.Events(ctx, run.Session, &client.EventsOptions{Follow: true}) {
		require.NoError(t, err)
		if e.Type == kind && e.Call != nil && e.Call.Tool == tool {
			return
		}
	}
	require.Fail(t, "the log ends before it")
}
