package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// How children stand: who works keeps an end, until the time for that is over; who is
// suspended or has ended rests.
func TestHowChildrenStand(t *testing.T) {
	at := time.Unix(100, 0)
	c := Children{LeaveBy: at.Add(time.Second), List: []Child{
		{Session: "s/a-1", By: "t1.1", Started: true, Status: agent.Running},
		{Session: "s/a-2", By: "t1.1", Started: true, Status: agent.Suspended},
		{Session: "s/a-3", By: "t1.2", Status: agent.Completed, Outcome: &agent.Outcome{}},
	}}
	require.Equal(t, agent.Children{Running: 1, Suspended: 1, Ended: 1}, c.counts())
	for session, rests := range map[string]bool{"s/a-1": false, "s/a-2": true, "s/a-3": true, "s/a-4": false} {
		require.Equal(t, rests, c.rests(session), session)
	}
	require.Equal(t, []string{"s/a-1", "s/a-2"}, c.startedBy("t1.1"))
	require.Equal(t, []bool{true, false}, []bool{c.keepEnd(at), c.keepEnd(c.LeaveBy)})
	require.False(t, c.starting())
	c.List[0].Outcome = &agent.Outcome{}
	require.Equal(t, []any{1, true, false}, []any{c.countLive(), c.working(), c.anyBusy()})
}
