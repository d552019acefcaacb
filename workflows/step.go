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

// step is an activity that a run wants done.
type step[In, Out any] struct {
	do      durable.Activity[In, Out]
	in      In
	options workflow.ActivityOptions
	// lane is where the step waits if the process that takes it has no slot for it.
	lane activities.Lane
	// mayKill tells that the step may be what ends its worker: the run, and not the
	// server, begins it again when its worker was lost, and counts. It needs a RetryPolicy.
	mayKill bool
	lost    int
	// tried tells a step that is begun again how many more attempts were made; nil if
	// nobody counts them.
	tried func(*step[In, Out], int)
	// carry hands on to a step that is begun again what it has left; it may be nil.
	carry func(*In, *agent.Error)
	// delayed tells the run that the step is made again later; nil if it never is.
	delayed func(until time.Time, err *agent.Error)
	// unpaid says with the last error what was left; it may be nil.
	unpaid func(In, *agent.Error) *agent.Error
}

// start schedules a step, and makes the machine's input of what comes of it. The step
// goes to the run's own task queue first: there the process that has the run in its
// cache, and with it the open part of the log, gets the step in the answer to its
// workflow task, without another write of the server's. Only a step that finds no free
// slot waits in its lane's queue.
//
// If a step may be what ends its worker, the error is [agent.WorkerLost] once it has lost
// maxLost of them.
func start[In, Out any](ctx workflow.Context, r *run, s step[In, Out], input func(Out, *agent.Error) loop.Input) {
	options := s.options
	if s.mayKill {
		policy := *options.RetryPolicy
		policy.NonRetryableErrorTypes = append(slices.Clip(policy.NonRetryableErrorTypes), lostType)
		options.RetryPolicy = &policy
	}
	await(r.ctx, r, s.do.Start(ctx, options, s.in), func(out Out, err *agent.Error) loop.Input {
		var full durable.Full
		var delayed durable.Delayed
		switch {
		case err == nil:
		case errors.As(err, &full):
			if s.tried != nil {
				s.tried(&s, full.Tried)
			}
			s.carryOn(err)
			s.options.TaskQueue = s.lane.Queue(workflow.GetInfo(ctx).TaskQueueName)
			start(ctx, r, s, input)
			return nil
		case errors.As(err, &delayed) && s.delayed != nil:
			s.tried(&s, delayed.Tried)
			s.carryOn(err)
			s.lost = 0
			s.delayed(workflow.Now(ctx).Add(delayed.Wait), err)
			r.later(ctx, delayed.Wait, func() { start(ctx, r, s, input) })
			return nil
		case errors.Is(err, durable.ErrLost) && s.mayKill:
			s.carryOn(err)
			if s.lost++; s.lost < maxLost {
				r.later(ctx, lostWait(ctx, s.lost), func() { start(ctx, r, s, input) })
				return nil
			}
			err = errLost()
		}
		if err != nil && s.unpaid != nil {
			err = s.unpaid(s.in, err)
		}
		return input(out, err)
	})
}

func (s *step[In, Out]) carryOn(err *agent.Error) {
	if s.carry != nil {
		s.carry(&s.in, err)
	}
}

// maxLost is how many workers in a row one step may lose.
const maxLost = 5

func errLost() *agent.Error {
	return agent.Errorf(agent.WorkerLost, "the worker was lost %d times while it did this step, which may be the reason; look at what ended the workers before the run goes on", maxLost)
}

// lostType is what Temporal calls the failure of an activity that sends no heartbeat.
const lostType = "TemporalTimeout:Heartbeat"

// lostWait is how long a run waits before it begins a step anew whose worker was lost n
// times: up to three and a half minutes in all. A step that ends its worker takes others with it, and
// they are not to meet it again each time: so runs wait differently long, each the same
// in every replay.
func lostWait(ctx workflow.Context, n int) time.Duration {
	base := []time.Duration{time.Second, 8 * time.Second, 30 * time.Second, time.Minute}[min(n, 4)-1]
	h := fnv.New32a()
	_, _ = h.Write([]byte(workflow.GetInfo(ctx).WorkflowExecution.RunID + strconv.Itoa(n))) // it returns no error
	return base + base*time.Duration(h.Sum32()%1000)/1000
}

// later does something after a time, or at once when the context is cancelled.
func (r *run) later(ctx workflow.Context, wait time.Duration, do func()) {
	r.when(workflow.NewTimer(ctx, wait), do)
}
