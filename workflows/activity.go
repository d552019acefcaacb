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

// activityCall is an activity that a run wants done.
type activityCall[In, Out any] struct {
	activity durable.Activity[In, Out]
	in       In
	options  workflow.ActivityOptions
	// lane is where the step waits if the process that takes it has no slot for it.
	lane activities.Lane
	// mayKill tells that the step may be what ends its worker: the run, and not the
	// server, begins it again when its worker was lost, and counts. It needs a RetryPolicy.
	mayKill bool
	lost    int
	// setAttempts tells a step that is begun again how many more attempts were made; nil if
	// nobody counts them.
	setAttempts func(*activityCall[In, Out], int)
	// takeOver hands on to a step that is begun again what it has left; it may be nil.
	takeOver func(*In, *agent.Error)
	// onDelay tells the run that the step is made again later; nil if it never is.
	onDelay func(until time.Time, err *agent.Error)
	// addCharges says with the last error what was left; it may be nil.
	addCharges func(In, *agent.Error) *agent.Error
}

// start schedules a step, and makes the machine's input of what comes of it. The step
// goes to the run's own task queue first: there the process that has the run in its
// cache, and with it the open part of the log, gets the step in the answer to its
// workflow task, without another write of the server's. Only a step that finds no free
// slot waits in its lane's queue.
//
// If a step may be what ends its worker, the error is [agent.CodeWorkerLost] once it has lost
// maxLost of them.
func start[In, Out any](ctx workflow.Context, r *run, s activityCall[In, Out], input func(Out, *agent.Error) loop.Input) {
	options := s.options
	if s.mayKill {
		policy := *options.RetryPolicy
		policy.NonRetryableErrorTypes = append(slices.Clip(policy.NonRetryableErrorTypes), lostWorkerType)
		options.RetryPolicy = &policy
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
			s.options.TaskQueue = s.lane.Queue(workflow.GetInfo(ctx).TaskQueueName)
			start(ctx, r, s, input)
			return nil
		case errors.As(err, &delayed) && s.onDelay != nil:
			s.setAttempts(&s, delayed.Tried)
			s.takeOverFrom(err)
			s.lost = 0
			s.onDelay(workflow.Now(ctx).Add(delayed.Wait), err)
			r.later(ctx, delayed.Wait, func() { start(ctx, r, s, input) })
			return nil
		case errors.Is(err, durable.ErrLost) && s.mayKill:
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

func (s *activityCall[In, Out]) takeOverFrom(err *agent.Error) {
	if s.takeOver != nil {
		s.takeOver(&s.in, err)
	}
}

// maxLostWorkers is how many workers in a row one step may lose.
const maxLostWorkers = 5

func lostWorkerError() *agent.Error {
	return agent.Errorf(agent.CodeWorkerLost, "the worker was lost %d times while it did this step, which may be the reason; look at what ended the workers before the run goes on", maxLostWorkers)
}

// lostWorkerType is what Temporal calls the failure of an activity that sends no heartbeat.
const lostWorkerType = "TemporalTimeout:Heartbeat"

// lostWorkerDelay is how long a run waits before it begins a step anew whose worker was lost n
// times: up to three and a half minutes in all. A step that ends its worker takes others with it, and
// they are not to meet it again each time: so runs wait differently long, each the same
// in every replay.
func lostWorkerDelay(ctx workflow.Context, n int) time.Duration {
	base := []time.Duration{time.Second, 8 * time.Second, 30 * time.Second, time.Minute}[min(n, 4)-1]
	h := fnv.New32a()
	_, _ = h.Write([]byte(workflow.GetInfo(ctx).WorkflowExecution.RunID + strconv.Itoa(n))) // it returns no error
	return base + base*time.Duration(h.Sum32()%1000)/1000
}

// later does something after a time, or at once when the context is cancelled.
func (r *run) later(ctx workflow.Context, wait time.Duration, do func()) {
	r.onReady(workflow.NewTimer(ctx, wait), do)
}
