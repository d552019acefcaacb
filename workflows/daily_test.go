package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	sdk "go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/workflows"
)

// Who cancels all workflows of a task queue does not give all runs of it the day's limit
// anew.
func TestADailyAccountOutlivesACancellation(t *testing.T) {
	env := new(sdk.WorkflowTestSuite).NewTestWorkflowEnvironment()
	(&workflows.Shell{}).Register(env)
	var grants []wire.DailyGrant
	claim := func() {
		env.UpdateWorkflow(signals.DailyClaim, "", &sdk.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { require.NoError(t, err) },
			OnComplete: func(out any, err error) {
				require.NoError(t, err)
				grants = append(grants, out.(wire.DailyGrant))
			},
		}, wire.DailyClaim{Limits: agent.DailyLimits{Tokens: 100}})
	}
	env.RegisterDelayedCallback(claim, time.Second)
	env.RegisterDelayedCallback(env.CancelWorkflow, 2*time.Second)
	env.RegisterDelayedCallback(claim, 3*time.Second)
	env.SetTestTimeout(5 * time.Second)
	env.ExecuteWorkflow(signals.DailyType)
	require.Len(t, grants, 2)
}

// The account begins a new history with each day that somebody claims on: keys that are taken
// away are not wanted for payloads of weeks ago.
func TestADailyAccountBeginsAnewEachDay(t *testing.T) {
	env := new(sdk.WorkflowTestSuite).NewTestWorkflowEnvironment()
	(&workflows.Shell{}).Register(env)
	env.SetStartTime(time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC))
	var grants []wire.DailyGrant
	claim := func() {
		env.UpdateWorkflow(signals.DailyClaim, "", &sdk.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { require.NoError(t, err) },
			OnComplete: func(out any, err error) {
				require.NoError(t, err)
				grants = append(grants, out.(wire.DailyGrant))
			},
		}, wire.DailyClaim{Limits: agent.DailyLimits{Tokens: 100}})
	}
	for _, after := range []time.Duration{time.Second, time.Minute, 2 * time.Hour} {
		env.RegisterDelayedCallback(claim, after)
	}
	env.ExecuteWorkflow(signals.DailyType)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &next)
	require.Equal(t, []string{"2026-11-21", "2026-11-21", "2026-11-22"}, []string{grants[0].Day, grants[1].Day, grants[2].Day})
	var carried loop.DailyAccount
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &carried))
	require.Equal(t, loop.DailyAccount{Day: "2026-11-22", Granted: agent.DailyLimits{Tokens: 2}}, carried)
}
