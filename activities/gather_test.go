package activities

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// pending is a server that has a run's steps in flight: those of states, one look after the
// other, the last forever.
type pending struct {
	client.Client
	states [][]enums.PendingActivityState
	step   string // CallModel's, unless it is another's
	err    error
	looks  int
}

func (p *pending) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	now := p.states[min(p.looks, len(p.states)-1)]
	p.looks++
	answer := &workflowservice.DescribeWorkflowExecutionResponse{}
	for _, s := range now {
		answer.PendingActivities = append(answer.PendingActivities, &workflowpb.PendingActivityInfo{State: s, ActivityType: &commonpb.ActivityType{Name: cmp.Or(p.step, CallModel.Name)}})
	}
	return answer, p.err
}

// A held root keeps its turn until the server knows that its steps have ended, for half a
// second at most; a step that no worker has does not keep it waiting.
func TestTheRootWaitsForItsOwnSteps(t *testing.T) {
	const started, scheduled = enums.PENDING_ACTIVITY_STATE_STARTED, enums.PENDING_ACTIVITY_STATE_SCHEDULED
	for _, c := range []struct {
		name   string
		server pending
		gone   bool
		took   time.Duration
	}{
		{"at once", pending{states: [][]enums.PendingActivityState{{}}}, true, 5 * time.Millisecond},
		{"reported later", pending{states: [][]enums.PendingActivityState{{started, scheduled}, {started}, {}}}, true, 35 * time.Millisecond},
		{"nobody has it", pending{states: [][]enums.PendingActivityState{{scheduled}}}, true, 5 * time.Millisecond},
		{"a slow store has it", pending{states: [][]enums.PendingActivityState{{started}}, step: Seal.Name}, true, 5 * time.Millisecond},
		{"another workflow is waited for", pending{states: [][]enums.PendingActivityState{{started}}, step: AwaitWorkflow.Name}, true, 5 * time.Millisecond},
		{"a flow's function goes on", pending{states: [][]enums.PendingActivityState{{started}}, step: AskFlow.Name}, false, 500 * time.Millisecond},
		{"cancelled before, and goes on", pending{states: [][]enums.PendingActivityState{{enums.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED}}}, false, 500 * time.Millisecond},
		{"never reported", pending{states: [][]enums.PendingActivityState{{started}}}, false, 500 * time.Millisecond},
		{"the server is away", pending{states: [][]enums.PendingActivityState{{}}, err: errors.New("away")}, false, 5 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				gone, err := (&Activities{InFlight: NewInFlight(), Client: &c.server}).awaitInFlight(t.Context(), "s")
				require.NoError(t, err)
				require.Equal(t, c.gone, gone)
				require.Equal(t, c.took, time.Since(began))
			})
		})
	}
}

// A step that does not end at once is not waited for: the server is not even asked.
func TestTheRootWaitsForNoStepThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flights, server := NewInFlight(), &pending{}
		_, leave := flights.enter(t.Context(), "s", nil)
		defer leave()
		began := time.Now()
		gone, err := (&Activities{InFlight: flights, Client: server}).awaitInFlight(t.Context(), "s")
		require.NoError(t, err)
		require.False(t, gone)
		require.Zero(t, server.looks)
		require.Equal(t, inFlightTime, time.Since(began))
	})
}
