package workflows

import (
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// tickTimeout is how long a tick tries to be heard: a session whose queue is full, or
// that is being stopped, may be ready later.
const tickTimeout = 10 * time.Minute

// tick is the workflow by which a schedule speaks to a session. It returns the run
// that has what was said.
func tick(ctx workflow.Context, raw converter.RawValue) (activities.TickResult, error) {
	data, bad := durable.Bytes(raw)
	if bad != nil {
		return activities.TickResult{}, durable.Failure(bad, nil)
	}
	t, bad := signals.DecodeTick(data)
	if bad != nil {
		return activities.TickResult{}, durable.Failure(bad, nil)
	}
	told, err := activities.Tick.Start(ctx, workflow.ActivityOptions{
		TaskQueue:           activities.StoreLane.Queue(workflow.GetInfo(ctx).TaskQueueName),
		StartToCloseTimeout: 30 * time.Second, ScheduleToCloseTimeout: tickTimeout,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
	}, t).Get(ctx)
	if err != nil {
		return told, durable.Failure(err, nil)
	}
	return told, nil
}
