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
	"github.com/fermata-agents/fermata/internal/wire"
)

// How long a flow's function may take for its next steps: within the workflow's task, and
// when it is asked once more by an activity.
const (
	flowTime     = time.Second
	flowSlowTime = 10 * time.Second
	flowMargin   = time.Second // in which it can say itself that the time was up
)

// performCall carries out an effect of a call or a flow.
func (r *run) performCall(ctx workflow.Context, e loop.Effect) {
	switch e := e.(type) {
	case loop.AskFlow:
		r.askFlow(ctx, e)
	case loop.CallTool:
		r.callTool(ctx, e)
	case loop.CancelCall:
		r.cancelCall(e.Call)
	case loop.Refresh:
		r.refresh(ctx, e)
	case loop.Look:
		r.look(ctx, e)
	default:
		r.performWorkspace(ctx, e)
	}
}

// askFlow asks a flow's function. It only decides, so a local activity does it: within the
// workflow's task, without another write of the server.
func (r *run) askFlow(ctx workflow.Context, e loop.AskFlow) {
	in := activities.FlowInput{FlowArgs: e.FlowArgs, UpTo: r.cacheTail(ctx, e.AskSeq), Within: agent.Duration(flowTime)}
	if e.Regular {
		in.Within = agent.Duration(flowSlowTime)
		start(ctx, r, activityCall[activities.FlowInput, wire.FlowAnswer]{
			activity: activities.AskFlow, in: in, options: minuteOptions(), lane: activities.StoreLane, countLostWorkers: true,
			setMissed: func(in *activities.FlowInput, n int) { in.Missed = n },
		}, func(a wire.FlowAnswer, err *agent.Error) loop.Input {
			return flowInput(e, a, err)
		})
		return
	}
	f := activities.AskFlow.StartLocal(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: flowTime + flowMargin, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	}, in)
	await(ctx, r, f, func(a wire.FlowAnswer, err *agent.Error) loop.Input {
		// Whatever it was, an activity may have more time, or run in a process that has the
		// flow or answers.
		if err != nil {
			return loop.FlowSlow{AskSeq: e.AskSeq}
		}
		return flowInput(e, a, nil)
	})
}

func flowInput(e loop.AskFlow, a wire.FlowAnswer, err *agent.Error) loop.Input {
	var missed durable.NoSlot
	switch {
	case err == nil:
		return loop.FlowAnswered{AskSeq: e.AskSeq, Answer: a}
	case !errors.As(err, &missed):
		return loop.FlowFailed{AskSeq: e.AskSeq, Err: err}
	case missed.Missing != nil:
		return loop.FlowFailed{AskSeq: e.AskSeq, Err: missed.Missing}
	}
	return loop.FlowSlow{AskSeq: e.AskSeq} // it was held, and is not asked any more
}

// callContext returns the context of a tool call's activity. A flow can cancel a single step, and a run
// a hook around a suspension, so each of these has a context of its own.
func (r *run) callContext(in activities.ToolInput) workflow.Context {
	if in.Step == "" && (in.Check == nil || !in.Check.Point.AroundSuspension()) {
		return r.work
	}
	ctx, cancel := workflow.WithCancel(r.work)
	if r.cancelCalls == nil {
		r.cancelCalls = map[string]workflow.CancelFunc{}
	}
	r.cancelCalls[in.Call] = cancel
	return ctx
}

// cancelCall cancels a single step.
func (r *run) cancelCall(call string) {
	if cancel := r.cancelCalls[call]; cancel != nil {
		cancel()
	}
}
