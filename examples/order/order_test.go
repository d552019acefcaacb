package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

func Example() {
	main()
	// Output:
	// Are 40 pairs meant?
	// socks are on their way
}

// The workflow alone, with a function that takes the place of the agent.
func TestOrder(t *testing.T) {
	for result, checker := range map[string]func(workflow.Context, agent.Start) (*agent.Outcome, error){
		"refused: no socks are left": func(workflow.Context, agent.Start) (*agent.Outcome, error) {
			return &agent.Outcome{Status: agent.StatusCompleted, Output: []byte(`{"fine": false, "why": "no socks are left"}`)}, nil
		},
		"somebody has to check it": func(workflow.Context, agent.Start) (*agent.Outcome, error) {
			return nil, temporal.NewNonRetryableApplicationError("5 turns are used up", string(agent.CodeLimitTurns), nil)
		},
	} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		env.RegisterWorkflowWithOptions(checker, workflow.RegisterOptions{Name: signals.WorkflowType})
		env.ExecuteWorkflow(Order, Request{Item: "socks", Pairs: 40})
		var got string
		require.NoError(t, env.GetWorkflowResult(&got))
		require.Equal(t, result, got)
	}
}
