package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
)

// A model call that ends its worker each time is not made for ever: after five workers the
// run is suspended, listings find it, and a resume makes the call again. Between two
// attempts it waits ever longer, so that what was lost with it may be done meanwhile.
func TestAStepThatEndsItsWorkers(t *testing.T) {
	const workers = 5
	b := setup(t, agent.Definition{}, testsuite.NewScript())
	var begun []time.Time
	b.OnActivity(activities.AskModel.Name, mock.Anything, mock.Anything).Return(func(context.Context, activities.AskInput) (agent.Reply, error) {
		if begun = append(begun, b.Now()); len(begun) <= workers {
			return agent.Reply{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_HEARTBEAT, nil)
		}
		return agent.Reply{Finish: agent.FinishStop, Parts: []agent.Part{{Type: agent.PartText, Text: "done"}}}, nil
	})
	b.after(time.Hour, func() {
		v := b.status(t)
		require.Equal(t, agent.Suspended, v.Status)
		require.Equal(t, agent.Paused, v.Suspension.Kind)
		require.Equal(t, string(agent.WorkerLost), v.Suspension.Cause)
		require.Equal(t, agent.WorkerLost, v.Suspension.Held[0].Code)
		require.Len(t, begun, workers)
		for i := 2; i < workers; i++ {
			require.Greater(t, begun[i].Sub(begun[i-1]), begun[i-1].Sub(begun[i-2]))
		}
		b.signal("resume", `{}`)
	})
	o := b.run(t, "go")
	require.Equal(t, agent.Completed, o.Status, "%+v", o.Error)
	require.Len(t, begun, workers+1)
}
