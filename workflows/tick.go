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

// tickTimeout is how long a tick is tried: a session whose backlog is full, or that is
// being stopped, may be ready later.
const tickTimeout = 10 * time.Minute

// tick is the workflow that a schedule starts. It sends a message or an event to a
// session, and returns the run that has it.
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
