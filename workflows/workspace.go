package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
)

// performWorkspace makes or ends the run's own workspace.
func (r *run) performWorkspace(ctx workflow.Context, e loop.Effect) {
	options := minuteOptions()
	options.StartToCloseTimeout = 10 * time.Minute // others may have the lock of all workspaces; heartbeats notice a lost worker
	options.RetryPolicy = &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 3, MaximumAttempts: 4, NonRetryableErrorTypes: nonRetryable}
	switch e := e.(type) {
	case loop.MakeWorkspace:
		start(r.work, r, activityCall[loop.MakeWorkspaceArgs, struct{}]{activity: activities.MakeWorkspace, in: e.MakeWorkspaceArgs, options: options, lane: activities.ToolLane, countLostWorkers: true, searchHeld: true}, func(_ struct{}, err *agent.Error) loop.Input {
			return loop.WorkspaceMade{Err: err}
		})
	case loop.EndWorkspace:
		start(ctx, r, activityCall[loop.EndWorkspaceArgs, agent.WorkspaceOutcome]{activity: activities.EndWorkspace, in: e.EndWorkspaceArgs, options: options, lane: activities.ToolLane, countLostWorkers: true, searchHeld: true}, func(o agent.WorkspaceOutcome, err *agent.Error) loop.Input {
			if err != nil {
				o = agent.WorkspaceOutcome{Result: agent.WorkspaceFailed, Error: err.Message}
			}
			return loop.WorkspaceEnded{Outcome: o}
		})
	}
}
