package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
)

// refresh asks this process for an agent's instructions. Whoever resumes, or the next turn, waits for the
// answer, and nothing but the process is asked, so few attempts in a short time are enough.
func (r *run) refresh(ctx workflow.Context, e loop.Refresh) {
	f := activities.Refresh.StartLocal(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: time.Second, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 3},
	}, e.RefreshArgs)
	await(ctx, r, f, func(o activities.RefreshResult, err *agent.Error) loop.Input {
		return loop.Refreshed{Instructions: o.Instructions, Policy: e.Policy, Same: o.Same, Err: err}
	})
}
