package testsuite

import (
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// usher stands between a run and Temporal's test environment: it tells when the run
// may rest, gives it an id of its own, and refuses what goes wrong there.
type usher struct {
	interceptor.WorkerInterceptorBase
	play *play
}

func (u *usher) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &ushered{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, play: u.play}
}

type ushered struct {
	interceptor.WorkflowInboundInterceptorBase
	play *play
}

func (u *ushered) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return u.Next.Init(&outbound{WorkflowOutboundInterceptorBase: interceptor.WorkflowOutboundInterceptorBase{Next: out}, play: u.play})
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	play *play
}

// GetInfo gives every run an id: the environment has one for all.
func (o *outbound) GetInfo(ctx workflow.Context) *workflow.Info {
	info := *o.Next.GetInfo(ctx)
	info.FirstRunID = o.play.run
	return &info
}

// UpsertMemo is what a run does when it comes to rest.
func (o *outbound) UpsertMemo(ctx workflow.Context, memo map[string]any) error {
	o.play.lookSoon(o.play.env)
	return o.Next.UpsertMemo(ctx, memo)
}

func (o *outbound) ExecuteChildWorkflow(workflow.Context, string, ...any) workflow.ChildWorkflowFuture {
	refuseTree()
	return nil
}

func startOptions(session string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: session}
}
