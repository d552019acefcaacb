package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
)

// localToolTimeout is how long a local tool may take. Past it, the call is repeated as a
// regular activity.
const localToolTimeout = time.Second

// callTool makes a tool call, by a local activity if the tool is local.
func (r *run) callTool(ctx workflow.Context, e loop.CallTool) {
	in := activities.ToolInput{ToolArgs: e.ToolArgs, UpTo: r.publishTail(ctx, r.state.Log.Seq)}
	if e.Local {
		r.callLocal(ctx, in)
		return
	}
	r.callActivity(ctx, in)
}

func (r *run) callActivity(ctx workflow.Context, in activities.ToolInput) {
	if !in.Edited && len(in.Arguments) > activities.MaxInline { // edited arguments are not in the log
		in.Arguments, in.ArgumentsInLog = nil, true
	}
	// A reset repeats this activity in another execution. The activity sees the
	// difference, and counts one more attempt.
	in.Execution = workflow.GetInfo(ctx).WorkflowExecution.RunID
	options := workflow.ActivityOptions{
		StartToCloseTimeout: time.Duration(in.Timeout) + timeoutMargin, HeartbeatTimeout: activities.CallHeartbeat, WaitForCancellation: true, Summary: in.Tool,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 100 * time.Second, MaximumAttempts: int32(in.Attempts), NonRetryableErrorTypes: nonRetryable},
	}
	start(r.work, r, activityCall[activities.ToolInput, activities.ToolOutput]{activity: activities.CallTool, in: in, options: options, lane: activities.ToolLane, setAttempts: setToolAttempts}, func(o activities.ToolOutput, err *agent.Error) loop.Input {
		return loop.ToolReturned{Result: resultOf(in, o.ToolResult, err), FromRuntime: err != nil, Hold: o.Hold, StateChanges: o.StateChanges, Question: o.Question, ToolsChange: o.ToolsChange}
	})
}

// setToolAttempts takes n attempts off those that the call has left.
func setToolAttempts(s *activityCall[activities.ToolInput, activities.ToolOutput], n int) {
	policy := *s.options.RetryPolicy
	s.in.Tried, policy.MaximumAttempts = s.in.Tried+n, policy.MaximumAttempts-int32(n)
	s.options.RetryPolicy = &policy
}

func (r *run) callLocal(ctx workflow.Context, in activities.ToolInput) {
	// It ends within a second, so nothing cancels it.
	f := activities.CallTool.StartLocal(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: localToolTimeout, RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumAttempts: int32(in.Attempts)},
	}, in)
	await(ctx, r, f, func(o activities.ToolOutput, err *agent.Error) loop.Input {
		if err != nil && err.Code == agent.CodeTimeout {
			// Whether it has run is unknown, but a local tool only reads; it is safe to
			// repeat.
			return loop.LocalToolSlow{Call: in.Call}
		}
		return loop.ToolReturned{Result: resultOf(in, o.ToolResult, err), FromRuntime: err != nil, Hold: o.Hold, StateChanges: o.StateChanges, Question: o.Question, ToolsChange: o.ToolsChange}
	})
}

// resultOf makes a result for the model from an activity that failed.
func resultOf(in activities.ToolInput, result agent.ToolResult, err *agent.Error) agent.ToolResult {
	if err == nil {
		return result
	}
	result = agent.ToolResult{Call: in.Call, Tool: in.Tool, Status: agent.CallFailed, Text: err.Message}
	switch {
	// With one attempt, Temporal reports a cancellation only for a call that never began.
	// One that began returns its own result.
	case errors.Is(err, durable.ErrCancelled) && in.Attempts == 1:
		result.Status, result.Text = agent.CallSkipped, "Not executed: it was given up before it was begun."
	case errors.Is(err, durable.ErrCancelled), errors.Is(err, durable.ErrLost), err.Code == agent.CodeTimeout:
		result.Status = agent.CallUnknown
		result.Text = "Unknown outcome: " + err.Message + ". The call may or may not have had its effect; look before you make it again."
	}
	return result
}
