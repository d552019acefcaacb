package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/handoff"
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
		r.giveUp(ctx)
	case loop.Wake:
		r.wake(ctx, e.At)
	case loop.Broadcast:
		r.broadcast(ctx, e)
	case loop.Gather:
		activities.Gather.StartLocal(ctx, workflow.LocalActivityOptions{
			StartToCloseTimeout: time.Second, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		}, r.state.Session)
	case loop.Fold:
		r.after = append(r.after, loop.Folded{Handoff: fold(e)})
	case loop.StartChild:
		r.startChild(ctx, e)
	case loop.TellChild:
		r.tellChild(ctx, e)
	case loop.TellParent:
		r.tellParent(ctx, e)
	case loop.PassOn:
		r.passOn(ctx, e)
	case loop.LookAfter:
		r.lookAfter(ctx, e)
	case loop.Lease:
		r.lease(ctx, e)
	case loop.Acknowledge:
		r.ack = e.Ack
	case loop.Publish:
		r.publish(ctx)
	case loop.CarryOver:
		r.carryOver()
	case loop.Complete:
		r.over = true
		r.shell.Tails.Drop(workflow.GetInfo(ctx).WorkflowExecution.RunID)
	}
}

// carryOver wants a new execution. A cancellation that came with the last input
// would be lost with this one, so it is looked for first.
func (r *run) carryOver() {
	if r.outer.Err() != nil {
		r.after = append(r.after, loop.Cancel{})
		return
	}
	r.carry = true
	r.queue.ring()
}

// giveUp cancels the model and tool calls in flight; the next ones have a context
// of their own.
func (r *run) giveUp(ctx workflow.Context) {
	r.abandon()
	r.work, r.abandon = workflow.WithCancel(ctx)
}

// broadcast stops what is in flight without waiting for the server. A replay has
// nothing in flight.
func (r *run) broadcast(ctx workflow.Context, e loop.Broadcast) {
	if !workflow.IsReplaying(ctx) {
		r.shell.Flights.Hold(agent.Heard{Session: e.Session, N: e.N, Verb: e.Verb}) //workflowcheck:ignore it changes nothing that the run sees
	}
}

// await makes the machine's input of a future when it is ready.
func await[Out any](ctx workflow.Context, r *run, f durable.Future[Out], input func(Out, *agent.Error) loop.Input) {
	r.when(f.Raw, func() {
		if in := input(f.Get(ctx)); in != nil {
			r.take(in)
		}
	})
}

// when does something once when a future is ready. (A selector calls back twice
// where two coroutines wait for one future, as an update's handler and the run do.)
func (r *run) when(f workflow.Future, do func()) {
	done := false
	r.selector.AddFuture(f, func(workflow.Future) {
		if !done {
			done = true
			do()
		}
	})
}

func (r *run) open(ctx workflow.Context, e loop.Open) {
	f := activities.Open.StartLocal(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second},
	}, activities.OpenInput{Session: r.state.Session, Agent: e.Agent})
	await(ctx, r, f, func(o activities.OpenResult, err *agent.Error) loop.Input {
		return loop.Opened{Spec: &o.Spec, Head: o.Head, Seq: o.Seq, Version: o.Version, Numbers: o.Numbers, Sources: o.Sources, Err: err}
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
	in := activities.AskInput{
		Session: r.state.Session, Run: r.state.Run, Turn: e.Turn, Upto: r.share(ctx), AfterToolResult: e.AfterToolResult,
		Note: e.Note, Heard: r.state.Heard, Parent: r.parent(),
	}
	timeout := time.Duration(r.state.Spec.ModelTimeout)
	if e.Summary != "" {
		in.Summary, in.Note, in.Output, in.Within = true, freshPrompt, nil, agent.Duration(e.Within)
	}
	if e.Summary == loop.SumHandoff {
		in.Note, in.Output = handoff.Prompt, handoff.SummarySchema()
	}
	f := activities.AskModel.Start(r.work, workflow.ActivityOptions{
		StartToCloseTimeout: timeout + grace, HeartbeatTimeout: activities.Heartbeat, WaitForCancellation: true,
		RetryPolicy: &forever, Summary: r.state.Spec.Model,
	}, in)
	await(ctx, r, f, func(reply agent.Reply, err *agent.Error) loop.Input {
		if err != nil {
			return loop.ModelFailed{Ask: e.Seq, Err: err}
		}
		return loop.Replied{Ask: e.Seq, Reply: reply, Parkings: parkings(reply)}
	})
}

// parent is the run above, whose end ends this one; nil for a root.
func (r *run) parent() *agent.Parent {
	if r.state.Birth == nil {
		return nil
	}
	return &r.state.Birth.Parent
}

// freshPrompt asks for what the run goes on with in the place of all that was said.
const freshPrompt = "Sum up this conversation for yourself: what the task is, what was done and found, what is decided, what is still to do, " +
	"and every name, number and path that you need to go on. Your summary will replace the conversation. Answer with the summary alone."

// parkings reads the model's calls of await_resumption.
func parkings(reply agent.Reply) (list []loop.Parking) {
	for _, c := range (agent.Message{Parts: reply.Parts}).ToolCalls() {
		if c.Tool != agent.ParkTool {
			continue
		}
		reason, conditions, err := signals.DecodeParking(c.Arguments)
		list = append(list, loop.Parking{Reason: reason, Conditions: conditions, Err: err})
	}
	return list
}

func (r *run) seal(ctx workflow.Context, e loop.Seal) {
	in := activities.SealInput{
		Session: r.state.Session, Run: r.state.Run, Upto: r.share(ctx), Agent: r.state.Spec.Name, Status: agent.Running, Version: r.state.Log.Version,
		Numbers: r.state.Numbers,
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
	at := activities.Place{Seq: l.Seq}
	if n := len(l.Tail); n > 0 { // else all of it is sealed
		at.Time = l.Tail[n-1].Time
	}
	return at
}

// wake asks for the machine's next look at the clock; a zero time for none.
func (r *run) wake(ctx workflow.Context, at time.Time) {
	if r.disarm != nil {
		r.disarm()
	}
	r.disarm, r.rung = nil, false
	if at.IsZero() {
		return
	}
	timer, cancel := workflow.WithCancel(ctx)
	r.disarm = cancel
	f := workflow.NewTimer(timer, max(at.Sub(workflow.Now(ctx)), time.Millisecond))
	r.when(f, func() {
		if f.Get(ctx, nil) == nil && timer.Err() == nil {
			r.rung = true
		}
	})
}

// publish shows the status where listings look. It can fail only by a fault of
// ours in the names, which every test would meet.
func (r *run) publish(ctx workflow.Context) {
	v := r.state.View(workflow.Now(ctx))
	deadline := time.Time{}
	if v.Suspension != nil {
		deadline = v.Suspension.Expires
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, signals.Rest(v.Agent, v.Status, v.Since, r.state.WaitsFor(), deadline)...); err != nil {
		panic(err)
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{agent.MemoKey: r.state.Memo()}); err != nil {
		panic(err)
	}
}
