package workflows

import (
	"errors"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
)

// activityCall is an activity to run, with how the run repeats it.
type activityCall[In, Out any] struct {
	activity durable.Activity[In, Out]
	in       In
	options  workflow.ActivityOptions
	// lane is the queue in which the activity waits if the process that takes it has no
	// free slot.
	lane activities.Lane
	// countLostWorkers means that the activity could crash its worker. The run itself repeats it
	// after a lost worker, until maxLostWorkers workers in a row were lost. It needs a
	// RetryPolicy. Tool calls do not set it: Temporal repeats those if Attempts allows.
	countLostWorkers bool
	lost             int
	// setAttempts records that n more attempts were made, for the next activity; nil if
	// nobody counts them.
	setAttempts func(*activityCall[In, Out], int)
	// takeOver passes what the last attempt left on to the next activity; it may be nil.
	takeOver func(*In, *agent.Error)
	// onDelay tells the run that the call is made again at a later time; nil if it never
	// is.
	onDelay func(until time.Time, err *agent.Error)
	// missed is how many workers in a row did not have what the activity needs in their
	// builds, and tried how many attempts were made before.
	missed, tried int
	// searchHeld means that the search for a worker goes on while the run is held, stopped or about to
	// continue as new. Set it for what has to be done before any of these can end.
	searchHeld bool
	// deadline is when the call has to be over, with all its attempts and its waiting; zero for never.
	deadline time.Time
	// setMissed tells the next activity of missed; it may be nil.
	setMissed func(*In, int)
	// addCharges adds to the last error what the call has used; it may be nil.
	addCharges func(In, *agent.Error) *agent.Error
}

// start schedules an activity and makes an input of its result.
//
// The activity is eager: it goes to the run's own task queue, and the process that has the run in
// its cache, and so the tail of its log, gets it in the response to its workflow task. That
// saves a write by the server and a query for the tail. Only an activity that finds no
// free slot waits in its lane's queue.
//
// With countLostWorkers, the error is [agent.CodeWorkerLost] once maxLostWorkers workers in a row
// were lost.
func start[In, Out any](ctx workflow.Context, r *run, s activityCall[In, Out], input func(Out, *agent.Error) loop.Input) {
	options := s.options
	if s.countLostWorkers {
		// The server would retry a lost worker itself, and count no losses.
		policy := *options.RetryPolicy
		policy.NonRetryableErrorTypes = append(slices.Clip(policy.NonRetryableErrorTypes), lostWorkerType)
		options.RetryPolicy = &policy
	}
	if !s.deadline.IsZero() {
		options.ScheduleToCloseTimeout = max(s.deadline.Sub(workflow.Now(ctx)), time.Second)
	}
	await(r.ctx, r, s.activity.Start(ctx, options, s.in), func(out Out, err *agent.Error) loop.Input {
		var full durable.NoSlot
		var delayed durable.Delayed
		switch {
		case err == nil:
		case errors.As(err, &full):
			if s.setAttempts != nil {
				s.setAttempts(&s, full.Tried)
			}
			s.takeOverFrom(err)
			// On the lane's queue, any process with a free slot takes it.
			s.options.TaskQueue = s.lane.Queue(workflow.GetInfo(ctx).TaskQueueName)
			if s.tried += full.Tried; full.Missing != nil {
				return findWorker(ctx, r, s, full, input)
			}
			start(ctx, r, s, input)
			return nil
		case errors.As(err, &delayed) && s.onDelay != nil:
			s.setAttempts(&s, delayed.Tried)
			s.takeOverFrom(err)
			s.lost = 0 // only losses in a row count
			s.onDelay(workflow.Now(ctx).Add(delayed.Wait), err)
			// A timer of the run and not the server's backoff, which tells nobody how
			// long it waits.
			r.later(ctx, delayed.Wait, func() { start(ctx, r, s, input) })
			return nil
		case errors.Is(err, durable.ErrLost) && s.countLostWorkers:
			s.takeOverFrom(err)
			if s.lost++; s.lost < maxLostWorkers {
				r.later(ctx, lostWorkerDelay(ctx, s.lost), func() { start(ctx, r, s, input) })
				return nil
			}
			err = lostWorkerError()
		}
		if err != nil && s.addCharges != nil {
			err = s.addCharges(s.in, err)
		}
		return input(out, err)
	})
}

// findWorker schedules an activity again after a while, since the build of the worker that took it
// lacks what it needs, as in a rolling deploy. That uses up none of its attempts, and takes eight to
// sixteen minutes, or about one for an open step. The error is a [durable.NoSlot]: with Missing once
// more than [activities.MaxMissed] workers in a row lacked it, and without if the run has begun to wait for the
// activity's end, to be suspended, stopped or continued as new. With searchHeld, only a cancelled
// context ends the search early.
func findWorker[In, Out any](ctx workflow.Context, r *run, s activityCall[In, Out], lacks durable.NoSlot, input func(Out, *agent.Error) loop.Input) loop.Input {
	giveUp := func(missing *agent.Error) loop.Input {
		var none Out
		err := agent.Errorf(agent.CodeNoWorker, "%w", durable.NoSlot{Tried: s.tried, Missing: missing})
		if s.addCharges != nil {
			err = s.addCharges(s.in, err)
		}
		return input(none, err)
	}
	if s.missed++; s.missed > activities.MaxMissed {
		return giveUp(lacks.Missing)
	}
	if s.setMissed != nil {
		s.setMissed(&s.in, s.missed)
	}
	wait := 30 * time.Second
	switch {
	case lacks.OpenStep != "": // the flow waits meanwhile, and the process that has the run in its cache was asked already
		wait = 2 * time.Second
	// The process that has the run in its cache has most often asked the flow for this step, and
	// so has it. It gets what comes by the run's queue, a few activities at a time.
	case s.missed%2 == 1:
		s.options.TaskQueue = ""
	}
	r.searches++
	pause := jittered(ctx, min(time.Second<<(s.missed-1), wait), r.searches)
	if !s.deadline.IsZero() && workflow.Now(ctx).Add(pause).After(s.deadline) {
		return giveUp(lacks.Missing)
	}
	r.later(ctx, pause, func() {
		if ctx.Err() == nil && (s.searchHeld || !r.beginsNothing(ctx)) {
			start(ctx, r, s, input)
		} else if in := giveUp(nil); in != nil {
			r.stepLive(in)
		}
	})
	return nil
}

// beginsNothing reports whether the run is held, stopped, or about to continue as new.
func (r *run) beginsNothing(ctx workflow.Context) bool {
	drains := workflow.GetInfo(ctx).GetContinueAsNewSuggested() && r.state.Turn.Phase == loop.TurnWorking
	return drains || len(r.state.Holds.List) > 0 || r.state.End.Stopping != nil
}

func (s *activityCall[In, Out]) takeOverFrom(err *agent.Error) {
	if s.takeOver != nil {
		s.takeOver(&s.in, err)
	}
}

// maxLostWorkers is how many workers in a row one call may lose.
const maxLostWorkers = 5

func lostWorkerError() *agent.Error {
	return agent.Errorf(agent.CodeWorkerLost, "the worker was lost %d times while it did this step, which may be the reason; find out what ended the workers before you resume the run", maxLostWorkers)
}

// lostWorkerType is the name of the error type that Temporal gives to a missed heartbeat.
const lostWorkerType = "TemporalTimeout:Heartbeat"

// lostWorkerDelay returns how long to wait before the next try after the nth lost worker:
// three and a half minutes in all at most.
//
// A call that crashes its worker takes that worker's other activities with it. Jitter
// from the run id keeps these neighbours from retrying at the same time. Replays compute
// the same delay.
func lostWorkerDelay(ctx workflow.Context, n int) time.Duration {
	return jittered(ctx, []time.Duration{time.Second, 8 * time.Second, 30 * time.Second, time.Minute}[min(n, 4)-1], n)
}

// jittered returns a time from base to twice that, for the nth try of a run.
func jittered(ctx workflow.Context, base time.Duration, n int) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(workflow.GetInfo(ctx).WorkflowExecution.RunID + strconv.Itoa(n))) // it returns no error
	return base + base*time.Duration(h.Sum32()%1000)/1000
}

// later calls do after a time, or at once if the context is cancelled. An activity that
// do then starts comes back as cancelled.
func (r *run) later(ctx workflow.Context, wait time.Duration, do func()) {
	r.onReady(workflow.NewTimer(ctx, wait), do)
}
