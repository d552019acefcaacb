package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
)

// importRun reads the state of a run that was suspended in another namespace or store.
func (r *run) importRun(ctx workflow.Context, e loop.Import) {
	start(ctx, r, activityCall[loop.ImportArgs, activities.ImportResult]{activity: activities.Import, in: e.ImportArgs, options: readLogOptions(), lane: activities.StoreLane, countLostWorkers: true}, func(o activities.ImportResult, err *agent.Error) loop.Input {
		return loop.Imported{Export: o.Export, State: o.State, Spec: &o.Spec, Err: err}
	})
}
