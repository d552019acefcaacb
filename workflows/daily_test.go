package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/testsuite"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/workflows"
)

// Who cancels all workflows of a task queue does not give all runs of it the day's limit
// anew.
func TestADailyAccountOutlivesACancellation(t *testing.T) {
	env := new(sdk.WorkflowTestSuite).NewTestWorkflowEnvironment()
	(&workflows.Shell{}).Register(env)
	var grants []agent.DailyGrant
	claim := func() {
		env.UpdateWorkflow(signals.DailyClaim, "", &sdk.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { require.NoError(t, err) },
			OnComplete: func(out any, err error) {
				require.NoError(t, err)
				grants = append(grants, out.(agent.DailyGrant))
			},
		}, agent.DailyClaim{Limits: agent.Daily{Tokens: 100}})
	}
	env.RegisterDelayedCallback(claim, time.Second)
	env.RegisterDelayedCallback(env.CancelWorkflow, 2*time.Second)
	env.RegisterDelayedCallback(claim, 3*time.Second)
	env.SetTestTimeout(5 * time.Second)
	env.ExecuteWorkflow(signals.DailyType)
	require.Len(t, grants, 2)
}
