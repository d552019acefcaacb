package testsuite

import (
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// runInterceptor is between a run and Temporal's test environment. It notices when the
// run may be suspended, gives it its own id, and refuses what the environment can't do.
type runInterceptor struct {
	interceptor.WorkerInterceptorBase
	play *testEnvRun
}

func (u *runInterceptor) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &runInbound{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, play: u.play}
}

type runInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	play *testEnvRun
}

func (u *runInbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return u.Next.Init(&runOutbound{WorkflowOutboundInterceptorBase: interceptor.WorkflowOutboundInterceptorBase{Next: out}, play: u.play})
}

type runOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	play *testEnvRun
}

// GetInfo gives every run its own id: the environment has the same for all.
func (o *runOutbound) GetInfo(ctx workflow.Context) *workflow.Info {
	info := *o.Next.GetInfo(ctx)
	info.FirstRunID = o.play.run
	return &info
}

// UpsertMemo is called by a run when it is suspended. The test may be waiting for that.
func (o *runOutbound) UpsertMemo(ctx workflow.Context, memo map[string]any) error {
	o.play.lookSoon(o.play.env)
	return o.Next.UpsertMemo(ctx, memo)
}

func (o *runOutbound) ExecuteChildWorkflow(workflow.Context, string, ...any) workflow.ChildWorkflowFuture {
	refuseTree()
	return nil
}

func startOptions(session string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: session}
}
