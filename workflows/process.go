package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// RegisterProcess registers the workflow by which other worker processes announce holds
// to this one. Register it on a task queue that only this process polls. The workflow
// ends at once and is queried after its end: a query costs the server no write.
func RegisterProcess(r Registry, f *activities.InFlight) {
	r.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		return signals.Held.Handle(ctx, func(h agent.HoldRef) (signals.None, error) {
			f.Told(h) //workflowcheck:ignore it changes nothing that the workflow sees
			return signals.None{}, nil
		})
	}, workflow.RegisterOptions{Name: signals.ProcessType})
}
