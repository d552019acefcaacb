package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/signals"
)

// perform does what the machine asks for.
func (r *run) perform(ctx workflow.Context, e loop.Effect) {
	switch e := e.(type) {
	case loop.Open:
		r.open(ctx, activities.OpenInput{OpenStep: e.OpenStep})
	case loop.Locate:
		r.locate(ctx, e)
	case loop.Import:
		r.importRun(ctx, e)
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
		r.wake, r.rung = &e, false
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
	case loop.GrantChild:
		r.tell(ctx, e.Session, signals.Grant, e.Order, func(error) {}) // one that has ended needs none
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
		if w := r.state.Rest.Wait; w != nil && w.Saved && r.state.Log.Sealing == 0 { // no step looks for its log until it goes on
			r.shell.Tails.Drop(workflow.GetInfo(ctx).WorkflowExecution.RunID)
		}
	case loop.CarryOver:
		r.carry = true
		r.ring()
	case loop.Complete:
		r.over = true
		r.shell.Tails.Drop(workflow.GetInfo(ctx).WorkflowExecution.RunID)
	}
}

// giveUp cancels the model and tool calls in flight; the next ones have a context
// of their own. Those in this process hear it at once: the server tells them at once only
// if it can push a cancellation, else with their next heartbeat.
func (r *run) giveUp(ctx workflow.Context) {
	if !workflow.IsReplaying(ctx) {
		r.shell.Flights.GiveUp(r.state.Session) //workflowcheck:ignore it changes nothing that the run sees
	}
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

func (r *run) open(ctx workflow.Context, in activities.OpenInput) {
	f := activities.Open.StartLocal(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: activities.OpenWithin,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second},
	}, in)
	await(ctx, r, f, func(o activities.OpenResult, err *agent.Error) loop.Input {
		if err != nil && err.Code == agent.Timeout && !in.Apart { // a store that does not heed its context
			in.Apart = true
			r.open(ctx, in)
			return nil
		}
		if err != nil || !o.Late {
			return opened(o, err)
		}
		start(ctx, r, step[activities.OpenInput, activities.Claimed]{do: activities.Claim, in: in, options: patient(), lane: activities.StoreLane, mayKill: true}, func(c activities.Claimed, err *agent.Error) loop.Input {
			o.Claimed = c
			return opened(o, err)
		})
		return nil
	})
}

func opened(o activities.OpenResult, err *agent.Error) loop.Input {
	return loop.Opened{
		Spec: &o.Spec, Head: o.Head, Seq: o.Seq, Version: o.Version, Fence: o.Fence, Numbers: o.Numbers, Posts: o.Posts, Inbox: o.Inbox, Sources: o.Sources, Behind: o.Behind, Lost: o.Lost, State: o.State,
		Imported: o.Imported, Err: err,
	}
}

func (r *run) locate(ctx workflow.Context, e loop.Locate) {
	in := e.LocateStep
	in.Fence.By = decision(ctx)
	start(ctx, r, step[loop.LocateStep, activities.LocateResult]{do: activities.Locate, in: in, options: reading(), lane: activities.StoreLane, mayKill: true}, func(o activities.LocateResult, err *agent.Error) loop.Input {
		return loop.Located{
			Head: o.Head, Seq: o.Seq, Version: o.Version, Chain: o.Chain, Numbers: o.Numbers, Posts: o.Posts, Inbox: o.Inbox, Forked: o.Forked, Turn: o.Turn, Tools: o.Tools,
			Migrated: o.Migrated, Recovered: o.Recovered, Lost: o.Lost, Err: err,
		}
	})
}

func (r *run) list(_ workflow.Context, e loop.List) {
	few := patient()
	few.StartToCloseTimeout = 10 * time.Minute // sources have their own times to start; heartbeats tell of lost workers
	few.RetryPolicy = &temporal.RetryPolicy{MaximumAttempts: 3}
	start(r.work, r, step[loop.ListStep, activities.ListResult]{do: activities.List, in: e.ListStep, options: few, lane: activities.ToolLane}, func(o activities.ListResult, err *agent.Error) loop.Input {
		return loop.Listed{Tools: o.Tools, Instructions: o.Instructions, Left: o.Left, Err: err}
	})
}

// patient are the options of a step that has a minute an attempt, and all attempts.
func patient() workflow.ActivityOptions {
	return workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: activities.Heartbeat, RetryPolicy: &forever}
}

// reading are the options of a step that may read a session's whole log, as a fork of an
// old checkpoint does. What an attempt has read stays in its worker's memory.
func reading() workflow.ActivityOptions {
	o := patient()
	o.StartToCloseTimeout = 10 * time.Minute
	return o
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

func (r *run) seal(ctx workflow.Context, e loop.Seal) {
	in := activities.SealInput{SealStep: e.SealStep, Upto: r.share(ctx, e.To)}
	in.Fence.By = decision(ctx)
	if !e.Within {
		r.sealApart(ctx, in)
		return
	}
	// So the run needs no turn at the server, which in a tree that is held comes behind
	// those of all others. What the store has may be ahead of the history until this task is
	// taken; a reader asks Temporal whether a run has ended.
	r.local++
	f := activities.Seal.StartLocal(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: sealSoon, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	}, in)
	await(ctx, r, f, func(o activities.SealResult, err *agent.Error) loop.Input {
		r.local--
		if err != nil { // a slow store, or none: that may take its time
			r.sealApart(ctx, in)
			return nil
		}
		return loop.Sealed{Head: o.Head, Version: o.Version, Seq: e.To, Chain: o.Chain, Kept: o.Kept}
	})
}

// decision names the write which the machine has decided. A task that the server did not
// take is done again at another time, and may decide otherwise under the fence's number.
func decision(ctx workflow.Context) string {
	return activities.Decision(workflow.GetInfo(ctx).WorkflowExecution.RunID, workflow.Now(ctx).UTC().Format(time.RFC3339Nano))
}

// sealSoon bounds a store that does not heed its context: the step gives it less.
const sealSoon = 3 * time.Second

// sealApart stores the log by a step of its own.
func (r *run) sealApart(ctx workflow.Context, in activities.SealInput) {
	// Past a few attempts the run says what keeps it, and tries again by itself.
	few := forever
	few.MaximumAttempts = 4
	options := patient()
	options.RetryPolicy = &few
	start(ctx, r, step[activities.SealInput, activities.SealResult]{do: activities.Seal, in: in, options: options, lane: activities.StoreLane, mayKill: true}, func(o activities.SealResult, err *agent.Error) loop.Input {
		if err != nil {
			err.Retryable = err.Retryable || err.Code == agent.Timeout
			return loop.SealFailed{Err: err}
		}
		return loop.Sealed{Head: o.Head, Version: o.Version, Seq: in.Upto.Seq, Chain: o.Chain, Kept: o.Kept}
	})
}

// share puts the log's open part where steps in this process find it, and
// returns the place up to which a step may look. The log may have grown since the
// step was asked for.
func (r *run) share(ctx workflow.Context, upTo int64) activities.Place {
	l := r.state.Log
	r.shell.Tails.Put(workflow.GetInfo(ctx).WorkflowExecution.RunID, l.Head, l.Tail)
	at := activities.Place{Seq: upTo}
	if i := len(l.Tail) - 1 - int(l.Seq-upTo); i >= 0 { // else all of it is sealed
		at.Time = l.Tail[i].Time
	}
	return at
}

// arm sets the timer for the machine's next look at the clock, as it was asked for last; a
// zero time asks for none. A step that is done within the task comes first: what follows it
// may ask for another time.
func (r *run) arm(ctx workflow.Context) {
	if r.wake == nil || r.local > 0 {
		return
	}
	e := *r.wake
	r.wake = nil
	if r.disarm != nil {
		r.disarm()
		r.disarm = nil
	}
	if e.At.IsZero() {
		return
	}
	timer, cancel := workflow.WithCancel(ctx)
	r.disarm = cancel
	f := workflow.NewTimerWithOptions(timer, max(e.At.Sub(workflow.Now(ctx)), time.Millisecond), workflow.TimerOptions{Summary: e.Why})
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
	workflow.SetCurrentDetails(ctx, details(v))
	if err := workflow.UpsertMemo(ctx, map[string]any{agent.MemoKey: r.state.Memo()}); err != nil {
		panic(err)
	}
}
