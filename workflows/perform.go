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

// perform carries out an effect.
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
	case loop.AskFlow, loop.CallTool, loop.CancelCall, loop.Look, loop.MakeWorkspace, loop.EndWorkspace, loop.Refresh:
		r.performCall(ctx, e)
	case loop.Seal:
		r.seal(ctx, e)
	case loop.CancelInFlight:
		r.cancelInFlight(ctx)
	case loop.SetTimer:
		r.nextTimer, r.timerFired = &e, false // drops a timer that fired: the machine has just looked at the time
	case loop.Broadcast:
		r.broadcast(ctx, e)
	case loop.AwaitInFlight:
		r.awaitInFlight(ctx, e)
	case loop.MakeHandoff:
		// Not stepped here: the step's other effects come first.
		r.immediate = append(r.immediate, loop.HandoffMade{Handoff: makeHandoff(e)})
	case loop.StartChild:
		r.startChild(ctx, e)
	case loop.OrderChild:
		r.orderChild(ctx, e)
	case loop.ReportToParent:
		r.reportToParent(ctx, e)
	case loop.GrantChild:
		r.sendSignal(ctx, e.Session, signals.GrantOrder, e.Order, func(error) {}) // a child that has ended needs no grant
	case loop.ForwardCommand:
		r.forward(ctx, e)
	case loop.CheckChild:
		r.checkChild(ctx, e)
	case loop.CheckParent:
		r.checkParent(ctx, e)
	case loop.Acknowledge:
		r.acknowledge(e)
	case loop.TakeSignals:
		r.signalsAsked = true
	case loop.Publish:
		r.publish(ctx)
		if w := r.state.Suspensions.Open; w != nil && w.Published && r.state.Log.SealingSeq == 0 { // no activity reads the tail until the suspension ends
			r.dropCaches(ctx)
		}
	case loop.ContinueAsNew:
		r.continueAsNew = true
		r.dropCaches(ctx) // the next execution has a tail and a play of its own
		r.wake()          // the main loop begins it, after all effects and signals
	case loop.Complete:
		r.over = true
		r.dropCaches(ctx)
	}
}

// dropCaches forgets what this process keeps of the run for its activities: a suspended run
// takes no memory beside the cached workflow.
func (r *run) dropCaches(ctx workflow.Context) {
	execution := workflow.GetInfo(ctx).WorkflowExecution.RunID
	r.shell.LogCache.Drop(execution)
	if r.shell.Plays != nil && r.recorded(ctx) { // what a replay would drop is of now
		r.shell.Plays.Drop(execution) //workflowcheck:ignore it changes nothing that the run sees
	}
}

// cancelInFlight cancels the model and tool calls in flight. The next calls get a new
// context. The activities have WaitForCancellation, so that results within the grace still
// come. Calls in this process are cancelled at once; the server would tell them only with
// their next heartbeat, unless it can push a cancellation.
func (r *run) cancelInFlight(ctx workflow.Context) {
	// A replay has nothing in flight, and must not cancel what runs now.
	if r.recorded(ctx) {
		r.shell.InFlight.CancelSession(r.state.Session) //workflowcheck:ignore it changes nothing that the run sees
	}
	r.cancelWork()
	r.work, r.cancelWork = workflow.WithCancel(ctx)
}

// broadcast cancels what is in flight in the whole tree without waiting for the server. A
// replay has nothing in flight.
func (r *run) broadcast(ctx workflow.Context, e loop.Broadcast) {
	if r.recorded(ctx) {
		r.shell.InFlight.Broadcast(agent.HoldRef{Session: e.Session, N: e.N, Verb: e.Verb, Grace: e.Grace, By: e.By}) //workflowcheck:ignore it changes nothing that the run sees
	}
}

func (r *run) open(ctx workflow.Context, in activities.OpenInput) {
	f := activities.Open.StartLocal(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: activities.OpenWithin,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second},
	}, in)
	await(ctx, r, f, func(o activities.OpenResult, err *agent.Error) loop.Input {
		if err != nil && err.Code == agent.CodeTimeout && !in.ClaimSeparately { // the store ignores its context, and Open was cut off
			in.ClaimSeparately = true
			r.open(ctx, in)
			return nil
		}
		// Late: the store did not answer within a local activity's time. A regular
		// activity claims the head, and may take long.
		if err != nil || !o.Late {
			return r.takeFiles(ctx, openedInput(o, err))
		}
		in.Input = "" // Open has checked it; the history does not need it twice
		start(ctx, r, activityCall[activities.OpenInput, activities.Claimed]{activity: activities.Claim, in: in, options: minuteOptions(), lane: activities.StoreLane, countLostWorkers: true}, func(c activities.Claimed, err *agent.Error) loop.Input {
			o.Claimed = c
			return r.takeFiles(ctx, openedInput(o, err))
		})
		return nil
	})
}

func openedInput(o activities.OpenResult, err *agent.Error) loop.Opened {
	return loop.Opened{
		Spec: &o.Spec, Head: o.Head, Seq: o.Seq, Version: o.Version, Fence: o.Fence, Counters: o.Counters, Receipts: o.Receipts, Backlog: o.Backlog, Sources: o.Sources, TerminatedRuns: o.TerminatedRuns, Unrecovered: o.Unrecovered, StateVersion: o.StateVersion,
		Imported: o.Imported, Err: err,
	}
}

func (r *run) locate(ctx workflow.Context, e loop.Locate) {
	in := e.LocateArgs
	in.Fence.By = decision(ctx)
	start(ctx, r, activityCall[loop.LocateArgs, activities.LocateResult]{activity: activities.Locate, in: in, options: readLogOptions(), lane: activities.StoreLane, countLostWorkers: true}, func(o activities.LocateResult, err *agent.Error) loop.Input {
		return loop.Located{
			Head: o.Head, Seq: o.Seq, Version: o.Version, Chain: o.Chain, Counters: o.Counters, Receipts: o.Receipts, Backlog: o.Backlog, Forked: o.Forked, Turn: o.Turn, Tools: o.Tools,
			Migrated: o.Migrated, Artifacts: o.Artifacts, Skills: o.Skills, Lessons: o.Lessons, Task: o.Task, TaskOf: o.TaskOf, Recovered: o.Recovered, Unrecovered: o.Unrecovered, Err: err,
		}
	})
}

func (r *run) list(_ workflow.Context, e loop.List) { // with r.work: a stop cancels it
	// Three attempts only: a source that stays away must not keep the run waiting.
	few := minuteOptions()
	few.StartToCloseTimeout = 10 * time.Minute // each source has its own timeout; heartbeats notice a lost worker
	few.RetryPolicy = &temporal.RetryPolicy{MaximumAttempts: 3}
	start(r.work, r, activityCall[loop.ListArgs, activities.ListResult]{activity: activities.List, in: e.ListArgs, options: few, lane: activities.ToolLane}, func(o activities.ListResult, err *agent.Error) loop.Input {
		return loop.Listed{Tools: o.Tools, Instructions: o.Instructions, Left: o.Left, Err: err}
	})
}

// minuteOptions are the options of an activity with a minute for each attempt, and
// unlimited attempts.
func minuteOptions() workflow.ActivityOptions {
	return workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: activities.Heartbeat, RetryPolicy: &retryForever}
}

// readLogOptions are the options of an activity that may read a session's whole log, as a
// fork of an old checkpoint does. What an attempt has read stays in its worker's memory.
func readLogOptions() workflow.ActivityOptions {
	o := minuteOptions()
	o.StartToCloseTimeout = 10 * time.Minute
	return o
}

// retryForever is for activities that fail only while a worker or the store is away.
// Errors that time does not mend are not retryable.
var retryForever = temporal.RetryPolicy{
	InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second, NonRetryableErrorTypes: nonRetryable,
}

// nonRetryable are SDK errors that it would retry although they are permanent: a result
// over 2 MB stays too large.
var nonRetryable = []string{"payloadSizeError"}

// timeoutMargin is what an activity gets beyond its own timeout, so that it can report
// itself that its time was up.
const timeoutMargin = 15 * time.Second

func (r *run) seal(ctx workflow.Context, e loop.Seal) {
	in := activities.SealInput{SealArgs: e.SealArgs, UpTo: r.cacheTail(ctx, e.To)}
	in.Fence.By = decision(ctx)
	if !e.Local {
		r.sealByActivity(ctx, in)
		return
	}
	// A regular activity needs one more workflow task, which in a held tree waits behind those
	// of all other runs. The price of a local one: the store can have the run's end before the
	// history has it. So readers ask Temporal, and not the store, whether a run has ended.
	r.localSeals++
	f := activities.Seal.StartLocal(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: sealTimeout(e), RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	}, in)
	await(ctx, r, f, func(o activities.SealResult, err *agent.Error) loop.Input {
		r.localSeals--
		if err != nil { // a slow store or none: a regular activity may take its time
			r.sealByActivity(ctx, in)
			if e.Report {
				return loop.SealSlow{}
			}
			return nil
		}
		return loop.Sealed{Head: o.Head, Version: o.Version, Seq: e.To, Chain: o.Chain, BacklogBlobs: o.BacklogBlobs}
	})
}

// decision returns the name of the write that this task decides. If the server refuses
// the task, it runs again later and may decide otherwise under the same fence number. The
// name tells the two writes apart.
func decision(ctx workflow.Context) string {
	return activities.Decision(workflow.GetInfo(ctx).WorkflowExecution.RunID, workflow.Now(ctx).UTC().Format(time.RFC3339Nano))
}

// sealTimeout bounds a store that ignores its context. The activity gives the store less. If somebody waits
// for the answer to an interrupt, it comes within the client's patience.
func sealTimeout(e loop.Seal) time.Duration {
	if e.Report {
		return 2 * time.Second
	}
	return 3 * time.Second
}

// sealByActivity stores the log by a regular activity.
func (r *run) sealByActivity(ctx workflow.Context, in activities.SealInput) {
	// After a few attempts the run shows what keeps it from storing, and tries again by
	// itself.
	few := retryForever
	few.MaximumAttempts = 4
	options := minuteOptions()
	options.RetryPolicy = &few
	start(ctx, r, activityCall[activities.SealInput, activities.SealResult]{activity: activities.Seal, in: in, options: options, lane: activities.StoreLane, countLostWorkers: true}, func(o activities.SealResult, err *agent.Error) loop.Input {
		if err != nil {
			// A timeout may pass: the machine schedules the next seal, as for every
			// retryable error.
			err.Retryable = err.Retryable || err.Code == agent.CodeTimeout
			return loop.SealFailed{Err: err}
		}
		return loop.Sealed{Head: o.Head, Version: o.Version, Seq: in.UpTo.Seq, Chain: o.Chain, BacklogBlobs: o.BacklogBlobs}
	})
}

// cacheTail puts the tail where activities in this process find it. One in another process
// asks the workflow for the tail by a query. cacheTail returns the position up to which the
// activity may read. The log may have grown since the machine
// asked for the activity.
func (r *run) cacheTail(ctx workflow.Context, upTo int64) activities.LogPosition {
	l := r.state.Log
	// Also in a replay: so a new worker's activities find the tail without a query.
	r.shell.LogCache.Put(workflow.GetInfo(ctx).WorkflowExecution.RunID, l.Head, l.Tail)
	at := activities.LogPosition{Seq: upTo}
	if i := len(l.Tail) - 1 - int(l.Seq-upTo); i >= 0 { // else all of it is sealed
		at.Time = l.Tail[i].Time
	}
	return at
}

// setTimer sets the timer that the machine asked for last. A zero time asks for none. It
// waits for local seals: what follows them may ask for another time, and each timer costs
// commands.
func (r *run) setTimer(ctx workflow.Context) {
	if r.nextTimer == nil || r.localSeals > 0 {
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
		// A timer that was cancelled or replaced is ready too, with an error.
		if f.Get(ctx, nil) == nil && timer.Err() == nil {
			r.timerFired = true
		}
	})
}

// publish updates the search attributes, the details and the memo. It panics if a name is
// wrong: that is a bug of ours, which every test would hit.
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

// awaitInFlight keeps the workflow task open while its local activity runs.
func (r *run) awaitInFlight(ctx workflow.Context, e loop.AwaitInFlight) {
	ended := activities.AwaitInFlight.StartLocal(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: time.Second, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	}, r.state.Session)
	if e.Report {
		await(ctx, r, ended, func(all bool, err *agent.Error) loop.Input { return loop.InFlightAwaited{Ended: err == nil && all} })
	}
}
