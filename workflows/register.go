package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agents"
	"github.com/fermata-agents/fermata/signals"
)

// Registry registers workflows: a worker, a replayer, or a test environment. Each also
// needs [Shell.Interceptor].
type Registry interface {
	RegisterWorkflowWithOptions(w any, o workflow.RegisterOptions)
}

// Register registers the workflows of runs, of daily limits, of schedules and of calls of
// Nexus operations.
func (s *Shell) Register(r Registry) {
	r.RegisterWorkflowWithOptions(s.run, workflow.RegisterOptions{Name: signals.WorkflowType})
	r.RegisterWorkflowWithOptions(daily, workflow.RegisterOptions{Name: signals.DailyType})
	r.RegisterWorkflowWithOptions(tick, workflow.RegisterOptions{Name: signals.TickType})
	r.RegisterWorkflowWithOptions(s.callNexus, workflow.RegisterOptions{Name: signals.NexusType})
	agents.Register(r)
}
