package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/signals"
)

// perform does what the machine asks for.
func (r *run) perform(ctx workflow.Context, e loop.Effect) {
	switch e := e.(type) {
	case loop.Open:
		r.open(ctx, e)
	case loop.List:
		r.list(ctx, e)
	case loop.CallModel:
		r.callModel(ctx, e)
	case loop.CallTool:
		r.callTool(ctx, e)
	case loop.Seal:
		r.seal(ctx, e)
	case loop.Abandon:
		r.abandon()
	case loop.Arm:
		r.arm(ctx, e.At)
	case loop.Disarm:
		r.disarm()
	case loop.Publish:
		r.publish(ctx)
	case loop.CarryOver:
		r.carryOver(ctx)
	case loop.Complete:
		r.over = true
		r.shell.Tails.Drop(workflow.GetInfo(ctx).WorkflowExecution.RunID)
	}
}

// carryOver ends this execution. A cancellation that came with the last input
// would be lost with it, so it is looked for first.
func (r *run) carryOver(ctx workflow.Context) {
	if r.outer.Err() != nil {
		r.step(ctx, loop.Cancel{})
		return
	}
	r.over, r.next = true, workflow.NewContinueAsNewError(ctx, signals.WorkflowType, nil, &r.state)
}

// await makes the machine's input of a future when it is ready.
func await[Out any](ctx workflow.Context, r *run, f durable.Future[Out], input func(Out, *agent.Error) loop.Input) {
	r.selector.AddFuture(f.Raw, func(workflow.Future) {
		if r.over {
			return
		}
		if in := input(f.Get(ctx)); in != nil {
			r.step(ctx, in)
		}
	})
}

func (r *run) open(ctx workflow.Context, e loop.Open) {
	f := activities.Open.StartLocal(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second},
	}, activities.OpenInput{Session: r.state.Session, Agent: e.Agent})
	await(ctx, r, f, func(o activities.OpenResult, err *agent.Error) loop.Input {
		return loop.Opened{Spec: &o.Spec, Head: o.Head, Seq: o.Seq, Version: o.Version, Sources: o.Sources, Err: err}
	})
}

func (r *run) list(ctx workflow.Context, e loop.List) {
	f := activities.List.Start(r.work, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, HeartbeatTimeout: activities.Heartbeat,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 3},
	}, activities.ListInput{Sources: e.Sources})
	await(ctx, r, f, func(o activities.ListResult, err *agent.Error) loop.Input {
		return loop.Listed{Tools: o.Tools, Err: err}
	})
}

// forever is for steps that only time can mend: a worker or a store that is gone
// comes back. What does not come back is an error that is not retryable.
var forever = temporal.RetryPolicy{
	InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second, NonRetryableErrorTypes: neverRetried,
}

// neverRetried are failures of the SDK's own that it takes for passing and that
// are not: a result over 2 MB stays one.
var neverRetried = []string{"payloadSizeError"}

// grace is what a step is given beyond the time that it gives itself, so that it
// can say itself that its time was up.
const grace = 15 * time.Second

func (r *run) callModel(ctx workflow.Context, e loop.CallModel) {
	at := r.share(ctx)
	spec := r.state.Spec
	f := activities.AskModel.Start(r.work, workflow.ActivityOptions{
		StartToCloseTimeout: time.Duration(spec.ModelTimeout) + grace, HeartbeatTimeout: activities.Heartbeat,
		RetryPolicy: &forever, Summary: spec.Model,
	}, activities.AskInput{
		Session: r.state.Session, Run: r.state.Run, Turn: e.Turn, Upto: at, AfterToolResult: e.AfterToolResult,
	})
	await(ctx, r, f, func(reply agent.Reply, err *agent.Error) loop.Input {
		if err != nil {
			return loop.ModelFailed{Err: err}
		}
		return loop.Replied{Reply: reply}
	})
}

func (r *run) seal(ctx workflow.Context, e loop.Seal) {
	in := activities.SealInput{
		Session: r.state.Session, Run: r.state.Run, Upto: r.share(ctx), Agent: r.state.Spec.Name, Status: agent.Running, Version: r.state.Log.Version,
	}
	if e.Final {
		in.Status = r.state.Outcome.Status
	}
	f := activities.Seal.Start(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, HeartbeatTimeout: activities.Heartbeat, RetryPolicy: &forever,
	}, in)
	await(ctx, r, f, func(o activities.SealResult, err *agent.Error) loop.Input {
		if err != nil {
			return loop.SealFailed{Err: err}
		}
		return loop.Sealed{Head: o.Head, Version: o.Version, Seq: e.To}
	})
}

// share puts the log's open part where steps in this process find it, and
// returns the place up to which a step may look.
func (r *run) share(ctx workflow.Context) activities.Place {
	l := r.state.Log
	r.shell.Tails.Put(workflow.GetInfo(ctx).WorkflowExecution.RunID, l.Head, l.Tail)
	return activities.Place{Seq: l.Seq, Time: l.Tail[len(l.Tail)-1].Time}
}

func (r *run) arm(ctx workflow.Context, at time.Time) {
	timer, cancel := workflow.WithCancel(ctx)
	r.disarm = cancel
	f := workflow.NewTimer(timer, at.Sub(workflow.Now(ctx)))
	r.selector.AddFuture(f, func(f workflow.Future) {
		if f.Get(ctx, nil) == nil && !r.over {
			r.step(ctx, loop.TimeUp{})
		}
	})
}

// publish shows the status where listings look. It can fail only by a fault of
// ours in the names, which every test would meet.
func (r *run) publish(ctx workflow.Context) {
	v := r.state.View(workflow.Now(ctx))
	if err := workflow.UpsertTypedSearchAttributes(ctx, signals.Attributes(v.Agent, v.Status, v.Since)...); err != nil {
		panic(err)
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{agent.MemoKey: r.state.Memo()}); err != nil {
		panic(err)
	}
}
