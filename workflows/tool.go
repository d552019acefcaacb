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

// hookWait is what a hook around a suspension or a resume gets beyond its timeout, for waiting in queues
// and for further attempts. A hook that is later has failed.
const hookWait = time.Minute

// callTool makes a tool call: by an activity, by a local one if the tool is local, or by
// calling what the user has in the namespace.
func (r *run) callTool(ctx workflow.Context, e loop.CallTool) {
	if e.Temporal != nil {
		r.callTemporal(ctx, e)
		return
	}
	in := activities.ToolInput{ToolArgs: e.ToolArgs, UpTo: r.cacheTail(ctx, r.state.Log.Seq)}
	if e.Local {
		r.callLocal(ctx, in)
		return
	}
	r.callActivity(ctx, in, e.Estimate)
}

// callActivity makes a tool call by an activity. estimate is the charge of a flow's model call of which
// nothing is known.
func (r *run) callActivity(ctx workflow.Context, in activities.ToolInput, estimate agent.Charge) {
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
	call := activityCall[activities.ToolInput, activities.ToolOutput]{
		activity: activities.CallTool, in: in, options: options, lane: activities.ToolLane, setAttempts: setToolAttempts, takeOver: (*activities.ToolInput).TakeOver,
		addCharges: activities.ToolInput.AddCharges,
	}
	if in.Check != nil && in.Check.Point.AroundSuspension() {
		// The run is mostly held, and whoever holds or resumes it waits for the hook.
		call.searchHeld, call.deadline = true, workflow.Now(ctx).Add(time.Duration(in.Timeout)+hookWait)
	}
	start(r.callContext(in), r, call, func(o activities.ToolOutput, err *agent.Error) loop.Input {
		delete(r.cancelCalls, in.Call)
		out := toolReturned(in, o, err)
		out.Estimate = estimate
		return out
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
		if err != nil && (err.Code == agent.CodeTimeout || errors.As(err, new(durable.NoSlot))) {
			// Whether it has run is unknown, but a local tool only reads; it is safe to
			// repeat. If this build lacks it, another worker may have it.
			return loop.LocalToolSlow{Call: in.Call}
		}
		return toolReturned(in, o, err)
	})
}

func toolReturned(in activities.ToolInput, o activities.ToolOutput, err *agent.Error) loop.ToolReturned {
	if err == nil {
		return loop.ToolReturned{
			Result: o.ToolResult, Hold: o.Hold, StateChanges: o.StateChanges, Artifacts: o.Artifacts, Skill: o.Skill, Question: o.Question, ToolsChange: o.ToolsChange, Charges: o.Charges,
		}
	}
	var missed durable.NoSlot
	_ = errors.As(err, &missed) // if not, nothing is missing
	failed := loop.FailedCall(in.Call, in.Tool, callEnd(err, in.Attempts), err)
	failed.Missing, failed.Charges = missed.Missing, err.Charges
	return failed
}

// callEnd returns how an activity ended that failed. attempts is how many it could have had; 0
// if a cancellation proves nothing.
func callEnd(err *agent.Error, attempts int) loop.CallEnd {
	var missed durable.NoSlot
	switch {
	case errors.As(err, &missed) && missed.Tried == 0:
		return loop.CallNotFound
	// With one attempt, Temporal reports a cancellation only for a call that never began.
	// One that began returns its own result. With several attempts it reports the same for a call
	// that waits for its next attempt, and nothing in the error tells the two apart.
	case errors.Is(err, durable.ErrCancelled) && attempts == 1:
		return loop.CallNotBegun
	case errors.Is(err, durable.ErrCancelled), errors.Is(err, durable.ErrLost), err.Code == agent.CodeTimeout, missed.Tried > 0:
		return loop.CallCutShort
	}
	return loop.CallBroken
}
