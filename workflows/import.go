package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
)

// importRun reads the state of a run that was suspended elsewhere.
func (r *run) importRun(ctx workflow.Context, e loop.Import) {
	f := activities.Import.Start(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, HeartbeatTimeout: activities.Heartbeat, RetryPolicy: &forever,
	}, activities.ImportInput{Session: r.state.Session, Agent: r.state.Origin.Start.Agent, Digest: e.Digest})
	await(ctx, r, f, func(o activities.ImportResult, err *agent.Error) loop.Input {
		return loop.Imported{Export: o.Export, State: o.State, Spec: &o.Spec, Err: err}
	})
}
