package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
)

// A workflow of a user's own that starts a run as its child reads the code of the run's
// failure, and whoever started that workflow reads it too.
func TestTheCodeOfAFailedChildWorkflow(t *testing.T) {
	b := setup(t, agent.Definition{}, testsuite.NewScript())
	var code agent.Code
	caller := func(ctx workflow.Context) error {
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: "trip-42"})
		start := agent.Start{Agent: "nobody", Input: agent.Input{Text: "go"}}
		err := workflow.ExecuteChildWorkflow(ctx, signals.WorkflowType, start, nil, nil).Get(ctx, nil)
		require.ErrorAs(t, err, new(*temporal.ChildWorkflowExecutionError))
		code = agent.CodeOf(err)
		return err
	}
	b.RegisterWorkflow(caller)
	b.ExecuteWorkflow(caller)
	require.Equal(t, agent.CodeUnknownAgent, code)
	require.Equal(t, agent.CodeUnknownAgent, agent.CodeOf(b.GetWorkflowError()))
	other := temporal.NewApplicationErrorWithCause("mine", "MyError", temporal.NewApplicationError("", string(agent.CodeStuck)))
	require.Equal(t, agent.CodeStuck, agent.CodeOf(other), "a type of the user's own hides no code")
	require.Equal(t, agent.CodeInternal, agent.CodeOf(temporal.NewApplicationError("", "MyError")))
}
