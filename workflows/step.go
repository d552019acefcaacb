package workflows

import (
	"errors"

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
}

// start schedules a step, and makes the machine's input of what comes of it. The step
// goes to the run's own task queue first: there the process that has the run in its
// cache, and with it the open part of the log, gets the step in the answer to its
// workflow task, without another write of the server's. Only a step that finds no free
// slot waits in its lane's queue.
func start[In, Out any](ctx workflow.Context, r *run, s step[In, Out], input func(Out, *agent.Error) loop.Input) {
	await(r.ctx, r, s.do.Start(ctx, s.options, s.in), func(out Out, err *agent.Error) loop.Input {
		if err != nil && errors.Is(err, durable.ErrFull) {
			s.options.TaskQueue = s.lane.Queue(workflow.GetInfo(ctx).TaskQueueName)
			await(r.ctx, r, s.do.Start(ctx, s.options, s.in), input)
			return nil
		}
		return input(out, err)
	})
}
