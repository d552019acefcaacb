package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/workflows"
)

// slowPost is a server that is slow with the first order to a run below: what is sent
// behind it may come first.
type slowPost struct {
	interceptor.WorkerInterceptorBase
	held bool
}

func (p *slowPost) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &postman{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, post: p}
}

type postman struct {
	interceptor.WorkflowInboundInterceptorBase
	post *slowPost
}

func (i *postman) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&bag{interceptor.WorkflowOutboundInterceptorBase{Next: out}, i.post})
}

type bag struct {
	interceptor.WorkflowOutboundInterceptorBase
	post *slowPost
}

// GetInfo tells a run below which it is: the test environment does not.
func (b *bag) GetInfo(ctx workflow.Context) *workflow.Info {
	info := *b.Next.GetInfo(ctx)
	info.FirstRunID = info.WorkflowExecution.RunID
	return &info
}

func (b *bag) SignalExternalWorkflow(ctx workflow.Context, session, execution, name string, what any) workflow.Future {
	if name != signals.ParentOrder || b.post.held {
		return b.Next.SignalExternalWorkflow(ctx, session, execution, name, what)
	}
	b.post.held = true
	arrived, settle := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		err := workflow.NewTimer(ctx, time.Minute).Get(ctx, nil)
		if err == nil {
			err = b.Next.SignalExternalWorkflow(ctx, session, execution, name, what).Get(ctx, nil)
		}
		settle.SetError(err)
	})
	return arrived
}

// away is a server that nobody reaches: a run below does not take its parent for gone.
type away struct{ client.Client }

func (away) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, serviceerror.NewUnavailable("away")
}

// What a run says to one below it quickly, one after the other, comes in its order,
// whatever the server makes of it: a resume is not overtaken by its pause.
func TestOrdersToARunBelowKeepTheirOrder(t *testing.T) {
	b := setup(t, agent.Definition{Agents: []agent.SubAgent{{Agent: "scout"}}, Tools: []string{agent.AskUserTool}}, testsuite.NewScript(
		testsuite.Reply{Match: "look around", Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Where?"}}}},
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "subagent__scout", Arguments: map[string]any{"task": "look around"}}}}, testsuite.Reply{Text: "done"}))
	scout := b.acts.Agents["tester"]
	scout.Spec.Name, scout.Spec.Agents = "scout", nil
	b.acts.Agents["scout"], b.acts.Client = scout, away{}
	shell := &workflows.Shell{LogCache: b.acts.LogCache, InFlight: b.acts.InFlight}
	b.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{shell.Interceptor(), &slowPost{}}})
	below := "default-test-workflow-id/scout-1"
	b.after(2*time.Minute, func() {
		b.signal("pause", `{}`)
		b.signal("resume", `{}`)
	})
	b.after(5*time.Minute, func() {
		v, err := b.QueryWorkflowByID(below, signals.Status.Name)
		require.NoError(t, err)
		var s agent.RunStatus
		require.NoError(t, v.Get(&s))
		require.NotNil(t, s.Suspension)
		require.Equal(t, agent.SuspensionInputRequired, s.Suspension.Kind)
		require.Empty(t, s.Suspension.Holds, "it was resumed last")
		require.NoError(t, b.SignalWorkflowByID(below, "answer", map[string]any{"request": s.Suspension.Requests[0].ID, "text": "here"}))
	})
	require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
}
