package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
)

// look looks at the files that an idle daemon watches. It is given up after a while: the machine looks
// again when the next look is due.
func (r *run) look(ctx workflow.Context, e loop.Look) {
	options := minuteOptions()
	options.ScheduleToCloseTimeout = 10 * time.Minute
	options.RetryPolicy = &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 3, MaximumAttempts: 5, NonRetryableErrorTypes: nonRetryable}
	start(ctx, r, activityCall[loop.LookArgs, agent.FilesSeen]{activity: activities.Look, in: e.LookArgs, options: options, lane: activities.ToolLane}, func(seen agent.FilesSeen, err *agent.Error) loop.Input {
		return loop.Looked{N: e.N, Seen: seen, Err: err}
	})
}
