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
		r.open(ctx, activities.OpenInput{OpenArgs: e.OpenArgs})
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
	case loop.CancelInFlight:
		r.cancelInFlight(ctx)
	case loop.SetTimer:
		r.nextTimer, r.woken = &e, false
	case loop.Broadcast:
		r.broadcast(ctx, e)
	case loop.AwaitInFlight:
		activities.AwaitInFlight.StartLocal(ctx, workflow.LocalActivityOptions{
			StartToCloseTimeout: time.Second, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		}, r.state.Session)
	case loop.MakeHandoff:
		r.immediate = append(r.immediate, loop.HandoffMade{Handoff: makeHandoff(e)})
	case loop.StartChild:
		r.startChild(ctx, e)
	case loop.OrderChild:
		r.orderChild(ctx, e)
	case loop.ReportToParent:
		r.reportToParent(ctx, e)
	case loop.GrantChild:
		r.sendSignal(ctx, e.Session, signals.GrantOrder, e.Order, func(error) {}) // one that has ended needs none
	case loop.ForwardCommand:
		r.forward(ctx, e)
	case loop.CheckChild:
		r.checkChild(ctx, e)
	case loop.CheckParent:
		r.checkParent(ctx, e)
	case loop.Acknowledge:
		r.ack = e.Ack
	case loop.Publish:
		r.publish(ctx)
		if w := r.state.Suspensions.Open; w != nil && w.Stored && r.state.Log.Sealing == 0 { // no step looks for its log until it goes on
			r.shell.LogCache.Drop(workflow.GetInfo(ctx).WorkflowExecution.RunID)
		}
	case loop.ContinueAsNew:
		r.continueAsNew = true
		r.wake()
	case loop.Complete:
		r.over = true
		r.shell.LogCache.Drop(workflow.GetInfo(ctx).WorkflowExecution.RunID)
	}
}

// cancelInFlight cancels the model and tool calls in flight; the next ones have a context
// of their own. Those in this process hear it at once: the server tells them at once only
// if it can push a cancellation, else with their next heartbeat.
func (r *run) cancelInFlight(ctx workflow.Context) {
	if !workflow.IsReplaying(ctx) {
		r.shell.InFlight.CancelSession(r.state.Session) //workflowcheck:ignore it changes nothing that the run sees
	}
	r.cancelWork()
	r.work, r.cancelWork = workflow.WithCancel(ctx)
}

// broadcast stops what is in flight without waiting for the server. A replay has
// nothing in flight.
func (r *run) broadcast(ctx workflow.Context, e loop.Broadcast) {
	if !workflow.IsReplaying(ctx) {
		r.shell.InFlight.Broadcast(agent.HoldRef{Session: e.Session, N: e.N, Verb: e.Verb}) //workflowcheck:ignore it changes nothing that the run sees
	}
}

func (r *run) open(ctx workflow.Context, in activities.OpenInput) {
	f := activities.Open.StartLocal(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: activities.OpenWithin,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second},
	}, in)
	await(ctx, r, f, func(o activities.OpenResult, err *agent.Error) loop.Input {
		if err != nil && err.Code == agent.CodeTimeout && !in.ClaimSeparately { // a store that does not heed its context
			in.ClaimSeparately = true
			r.open(ctx, in)
			return nil
		}
		if err != nil || !o.Late {
			return opened(o, err)
		}
		start(ctx, r, activityCall[activities.OpenInput, activities.Claimed]{activity: activities.Claim, in: in, options: minuteOptions(), lane: activities.StoreLane, mayKill: true}, func(c activities.Claimed, err *agent.Error) loop.Input {
			o.Claimed = c
			return opened(o, err)
		})
		return nil
	})
}

func opened(o activities.OpenResult, err *agent.Error) loop.Input {
	return loop.Opened{
		Spec: &o.Spec, Head: o.Head, Seq: o.Seq, Version: o.Version, Fence: o.Fence, Counters: o.Counters, Receipts: o.Receipts, Backlog: o.Backlog, Sources: o.Sources, TerminatedRuns: o.TerminatedRuns, Unrecovered: o.Unrecovered, StateVersion: o.StateVersion,
		Imported: o.Imported, Err: err,
	}
}

func (r *run) locate(ctx workflow.Context, e loop.Locate) {
	in := e.LocateArgs
	in.Fence.By = decision(ctx)
	start(ctx, r, activityCall[loop.LocateArgs, activities.LocateResult]{activity: activities.Locate, in: in, options: readLogOptions(), lane: activities.StoreLane, mayKill: true}, func(o activities.LocateResult, err *agent.Error) loop.Input {
		return loop.Located{
			Head: o.Head, Seq: o.Seq, Version: o.Version, Chain: o.Chain, Counters: o.Counters, Receipts: o.Receipts, Backlog: o.Backlog, Forked: o.Forked, Turn: o.Turn, Tools: o.Tools,
			Migrated: o.Migrated, Recovered: o.Recovered, Unrecovered: o.Unrecovered, Err: err,
		}
	})
}

func (r *run) list(_ workflow.Context, e loop.List) {
	few := minuteOptions()
	few.StartToCloseTimeout = 10 * time.Minute // sources have their own times to start; heartbeats tell of lost workers
	few.RetryPolicy = &temporal.RetryPolicy{MaximumAttempts: 3}
	start(r.work, r, activityCall[loop.ListArgs, activities.ListResult]{activity: activities.List, in: e.ListArgs, options: few, lane: activities.ToolLane}, func(o activities.ListResult, err *agent.Error) loop.Input {
		return loop.Listed{Tools: o.Tools, Instructions: o.Instructions, Left: o.Left, Err: err}
	})
}

// minuteOptions are the options of a step that has a minute an attempt, and all attempts.
func minuteOptions() workflow.ActivityOptions {
	return workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: activities.Heartbeat, RetryPolicy: &retryForever}
}

// readLogOptions are the options of a step that may read a session's whole log, as a fork of an
// old checkpoint does. What an attempt has read stays in its worker's memory.
func readLogOptions() workflow.ActivityOptions {
	o := minuteOptions()
	o.StartToCloseTimeout = 10 * time.Minute
	return o
}

// retryForever is for steps that only time can mend: a worker or a store that is gone
// comes back. What does not come back is an error that is not retryable.
var retryForever = temporal.RetryPolicy{
	InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second, NonRetryableErrorTypes: nonRetryable,
}

// nonRetryable are failures of the SDK's own that it takes for passing and that
// are not: a result over 2 MB stays one.
var nonRetryable = []string{"payloadSizeError"}

// timeoutMargin is what a step is given beyond the time that it gives itself, so that it
// can say itself that its time was up.
const timeoutMargin = 15 * time.Second

func (r *run) seal(ctx workflow.Context, e loop.Seal) {
	in := activities.SealInput{SealArgs: e.SealArgs, UpTo: r.publishTail(ctx, e.To)}
	in.Fence.By = decision(ctx)
	if !e.Local {
		r.sealByActivity(ctx, in)
		return
	}
	// So the run needs no turn at the server, which in a tree that is held comes behind
	// those of all others. What the store has may be ahead of the history until this task is
	// taken; a reader asks Temporal whether a run has ended.
	r.local++
	f := activities.Seal.StartLocal(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: localSealTimeout, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	}, in)
	await(ctx, r, f, func(o activities.SealResult, err *agent.Error) loop.Input {
		r.local--
		if err != nil { // a slow store, or none: that may take its time
			r.sealByActivity(ctx, in)
			return nil
		}
		return loop.Sealed{Head: o.Head, Version: o.Version, Seq: e.To, Chain: o.Chain, BacklogBlobs: o.BacklogBlobs}
	})
}

// decision names the write which the machine has decided. A task that the server did not
// take is done again at another time, and may decide otherwise under the fence's number.
func decision(ctx workflow.Context) string {
	return activities.Decision(workflow.GetInfo(ctx).WorkflowExecution.RunID, workflow.Now(ctx).UTC().Format(time.RFC3339Nano))
}

// localSealTimeout bounds a store that does not heed its context: the step gives it less.
const localSealTimeout = 3 * time.Second

// sealByActivity stores the log by a step of its own.
func (r *run) sealByActivity(ctx workflow.Context, in activities.SealInput) {
	// Past a few attempts the run says what keeps it, and tries again by itself.
	few := retryForever
	few.MaximumAttempts = 4
	options := minuteOptions()
	options.RetryPolicy = &few
	start(ctx, r, activityCall[activities.SealInput, activities.SealResult]{activity: activities.Seal, in: in, options: options, lane: activities.StoreLane, mayKill: true}, func(o activities.SealResult, err *agent.Error) loop.Input {
		if err != nil {
			err.Retryable = err.Retryable || err.Code == agent.CodeTimeout
			return loop.SealFailed{Err: err}
		}
		return loop.Sealed{Head: o.Head, Version: o.Version, Seq: in.UpTo.Seq, Chain: o.Chain, BacklogBlobs: o.BacklogBlobs}
	})
}

// publishTail puts the log's open part where steps in this process find it, and
// returns the place up to which a step may look. The log may have grown since the
// step was asked for.
func (r *run) publishTail(ctx workflow.Context, upTo int64) activities.LogPosition {
	l := r.state.Log
	r.shell.LogCache.Put(workflow.GetInfo(ctx).WorkflowExecution.RunID, l.Head, l.Tail)
	at := activities.LogPosition{Seq: upTo}
	if i := len(l.Tail) - 1 - int(l.Seq-upTo); i >= 0 { // else all of it is sealed
		at.Time = l.Tail[i].Time
	}
	return at
}

// setTimer sets the timer for the machine's next look at the clock, as it was asked for last; a
// zero time asks for none. A step that is done within the task comes first: what follows it
// may ask for another time.
func (r *run) setTimer(ctx workflow.Context) {
	if r.nextTimer == nil || r.local > 0 {
		return
	}
	e := *r.nextTimer
	r.nextTimer = nil
	if r.cancelTimer != nil {
		r.cancelTimer()
		r.cancelTimer = nil
	}
	if e.At.IsZero() {
		return
	}
	timer, cancel := workflow.WithCancel(ctx)
	r.cancelTimer = cancel
	f := workflow.NewTimerWithOptions(timer, max(e.At.Sub(workflow.Now(ctx)), time.Millisecond), workflow.TimerOptions{Summary: e.Reason})
	r.onReady(f, func() {
		if f.Get(ctx, nil) == nil && timer.Err() == nil {
			r.woken = true
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
	if err := workflow.UpsertTypedSearchAttributes(ctx, signals.SuspendedAttributes(v.Agent, v.Status, v.Since, r.state.WaitsFor(), deadline)...); err != nil {
		panic(err)
	}
	workflow.SetCurrentDetails(ctx, details(v))
	if err := workflow.UpsertMemo(ctx, map[string]any{agent.MemoKey: r.state.Memo()}); err != nil {
		panic(err)
	}
}
