package workflows

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/signals"
)

// outsideCall is a call of an activity, a workflow or a Nexus operation of the user's own.
type outsideCall struct {
	in activities.ToolInput
	to agent.TemporalCall
	// ctx is the call's context, which a hold or a flow cancels. outside is the same with the
	// converter of what the user has.
	ctx, outside workflow.Context
}

// callTemporal makes a call without an activity of ours. It holds no slot, and no lost worker
// of ours ends it.
func (r *run) callTemporal(ctx workflow.Context, e loop.CallTool) {
	c := outsideCall{in: activities.ToolInput{ToolArgs: e.ToolArgs, UpTo: r.cacheTail(ctx, r.state.Log.Seq)}, to: *e.Temporal}
	c.ctx = r.callContext(c.in)
	if c.outside = c.ctx; c.to.Kind != agent.TemporalNexus { // that one's workflow is ours, and has the converter itself
		c.outside = r.shell.outside(c.ctx)
	}
	if !e.Edited {
		r.callOutside(c)
		return
	}
	// An approver has edited the arguments. Only an activity can check them: the rules'
	// schemas are in the log.
	check := c.in
	check.CheckOnly = true
	options := minuteOptions()
	options.Summary = c.summary()
	start(c.ctx, r, activityCall[activities.ToolInput, activities.ToolOutput]{activity: activities.CallTool, in: check, options: options, lane: activities.ToolLane, countLostWorkers: true}, func(o activities.ToolOutput, err *agent.Error) loop.Input {
		switch {
		case err == nil && o.Status == agent.CallOK && c.ctx.Err() == nil:
			r.callOutside(c)
			return nil
		case err == nil && o.Status == agent.CallOK:
			return c.skipped()
		}
		delete(r.cancelCalls, c.in.Call)
		return toolReturned(c.in, o, err)
	})
}

// skipped returns the input for a call that was cancelled before it began.
func (c outsideCall) skipped() loop.ToolReturned {
	return loop.FailedCall(c.in.Call, c.in.Tool, loop.CallNotBegun, nil)
}

// arguments returns the one argument of the call; none for a flow's nil.
func (c outsideCall) arguments() []any {
	if string(c.in.Arguments) == "null" {
		return nil
	}
	return []any{c.in.Arguments}
}

// summary is what people see of the call in Temporal's UI.
func (c outsideCall) summary() string { return cmp.Or(c.in.Step, c.in.Tool) }

// stepReturned steps what came of a call. The machine cuts a long text: the workflow must not
// decide by the length of a remark, which a later build may write otherwise.
func (r *run) stepReturned(c outsideCall, f workflow.Future) {
	var out converter.RawValue
	err := f.Get(c.outside, &out)
	result := agent.ToolResult{Call: c.in.Call, Tool: c.in.Tool}
	var ours bool
	result.Status, result.Text, ours = durable.Called(c.to, time.Duration(c.in.Timeout), out, err)
	result.Text = activities.Printable(result.Text)
	r.stepCalled(loop.ToolReturned{Result: result, FromRuntime: ours})
}

func (r *run) stepCalled(in loop.ToolReturned) {
	delete(r.cancelCalls, in.Result.Call)
	r.stepLive(in)
}

func (r *run) callOutside(c outsideCall) {
	if c.to.Kind == agent.TemporalActivity {
		r.callOwnActivity(c)
		return
	}
	r.callOwnWorkflow(c)
}

func (r *run) callOwnActivity(c outsideCall) {
	ctx := workflow.WithActivityOptions(c.outside, workflow.ActivityOptions{
		TaskQueue: c.to.TaskQueue, StartToCloseTimeout: time.Duration(c.in.Timeout), ScheduleToStartTimeout: time.Duration(c.to.StartTimeout), HeartbeatTimeout: time.Duration(c.to.Heartbeat),
		WaitForCancellation: true, Summary: c.summary(), RetryPolicy: c.retryPolicy(),
	})
	f := workflow.ExecuteActivity(ctx, c.to.Type, c.arguments()...)
	r.onReady(f, func() { r.stepReturned(c, f) })
}

func (c outsideCall) retryPolicy() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 100 * time.Second, MaximumAttempts: int32(c.in.Attempts), NonRetryableErrorTypes: slices.Concat(c.to.NonRetryable, []string{string(agent.CodeDenied)}),
	}
}

// callOwnWorkflow makes a call by a child workflow: the user's own, or the one that calls a
// Nexus operation. Its ID is the call's idempotency key.
func (r *run) callOwnWorkflow(c outsideCall) {
	id := agent.IdempotencyKey(cmp.Or(c.in.OriginRun, c.in.Run), cmp.Or(c.in.Step, c.in.Call))
	options := workflow.ChildWorkflowOptions{
		WorkflowID: id, TaskQueue: c.to.TaskQueue, WorkflowExecutionTimeout: time.Duration(c.in.Timeout), WaitForCancellation: true,
		ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY, // what has completed is not done again
		StaticSummary:         c.summary(), RetryPolicy: c.retryPolicy(),
	}
	kind, arguments := c.to.Type, c.arguments()
	if c.to.Kind == agent.TemporalNexus {
		kind, arguments = signals.NexusType, []any{nexusInput{Temporal: c.to, Timeout: c.in.Timeout, Arguments: c.in.Arguments}}
		options.WorkflowExecutionTimeout, options.RetryPolicy = time.Duration(c.in.Timeout)+timeoutMargin, nil
	}
	f := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(c.outside, options), kind, arguments...)
	started := f.GetChildWorkflowExecution()
	r.onReady(f, func() {
		began := started.IsReady() && started.Get(r.ctx, nil) == nil
		switch err := f.Get(r.ctx, nil); {
		case temporal.IsWorkflowExecutionAlreadyStartedError(err):
			r.awaitOwnWorkflow(c, id)
		case temporal.IsCanceledError(err) && !began:
			r.stepCalled(c.skipped())
		default:
			r.stepReturned(c, f)
		}
	})
}

// awaitOwnWorkflow takes the result of a workflow that an earlier call with the same key has
// started: before a hold, or before the run's workflow was reset.
func (r *run) awaitOwnWorkflow(c outsideCall, id string) {
	in := activities.AwaitWorkflowInput{ID: id, Temporal: c.to, Timeout: c.in.Timeout, Call: c.in.Call, Tool: c.in.Tool}
	options := workflow.ActivityOptions{
		StartToCloseTimeout: time.Duration(c.in.Timeout) + timeoutMargin, HeartbeatTimeout: activities.CallHeartbeat, WaitForCancellation: true, Summary: c.summary(), RetryPolicy: &retryForever,
	}
	start(c.ctx, r, activityCall[activities.AwaitWorkflowInput, agent.ToolResult]{activity: activities.AwaitWorkflow, in: in, options: options, lane: activities.ToolLane}, func(o agent.ToolResult, err *agent.Error) loop.Input {
		delete(r.cancelCalls, c.in.Call)
		if err != nil { // a cancellation is no proof that the workflow did not begin
			return loop.FailedCall(c.in.Call, c.in.Tool, callEnd(err, 0), err)
		}
		return loop.ToolReturned{Result: o}
	})
}
