package workflows_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
)

// registry is a server where every run that is asked for lives, and which counts. (In the
// test environment a run has no first execution.)
type registry struct {
	client.Client
	asked atomic.Int64
}

// GetWorkflow finds nothing.
func (r *registry) GetWorkflow(context.Context, string, string) client.WorkflowRun {
	return forgotten{}
}

type forgotten struct{ client.WorkflowRun }

func (forgotten) Get(context.Context, any) error { return serviceerror.NewNotFound("forgotten") }

func (r *registry) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	r.asked.Add(1)
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING}}, nil
}

// An agent that rests looks at its parent, in the background or not: a reset parent may
// know nothing of it (docs/decisions/0025).
func TestAgentsThatRestLookAtTheirParent(t *testing.T) {
	for _, background := range []bool{false, true} {
		asks := []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Where?"}}}
		b := setup(t, agent.Definition{Agents: []agent.SubAgent{{Agent: "scout"}}, Lifecycle: true, Tools: []string{agent.AskUserTool}}, testsuite.NewScript(
			testsuite.Reply{Match: "look around", Calls: asks},
			testsuite.Reply{Match: `\Ago`, Calls: []testsuite.Call{{Tool: "subagent__scout", Arguments: map[string]any{"task": "look around", "background": background}}}},
			testsuite.Reply{Match: ".*", Calls: asks}))
		scout := b.acts.Agents["tester"]
		scout.Spec.Name, scout.Spec.Agents = "scout", nil
		server := &registry{}
		b.acts.Agents["scout"], b.acts.Client, b.acts.ParentChecks = scout, server, activities.NewParentChecks()
		b.after(time.Hour, func() { b.signal("cancel", `{}`) })
		require.Equal(t, agent.StatusCancelled, b.run(t, "go").Status)
		require.Positive(t, server.asked.Load(), "background %t", background)
	}
}
