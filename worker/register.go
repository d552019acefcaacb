package worker

import (
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/workflows"
)

// Registry registers workflows and activities: an environment of Temporal's test suite.
type Registry interface {
	RegisterWorkflowWithOptions(w any, o workflow.RegisterOptions)
	RegisterActivityWithOptions(a any, o activity.RegisterOptions)
}

// Components are what a worker runs, without the worker and its server. The package
// testsuite plays runs with them. Nothing can query another run there, so no parent is
// checked and no terminated run recovered.
type Components struct {
	o    *Options
	acts *activities.Activities
}

// Components checks the options and fits them together. Errors are those of [New].
func (o *Options) Components() (*Components, error) {
	acts, err := o.resolve()
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	return &Components{o, acts}, nil
}

// Register registers everything in one of several environments. It returns the
// interceptors that the environment needs.
func (p *Components) Register(r Registry) []interceptor.WorkerInterceptor {
	acts := *p.acts
	// Each environment has its own caches, since two environments may use the same names
	// for runs.
	acts.LogCache, acts.InFlight, acts.ParentChecks, acts.Plays = activities.NewLogCache(), activities.NewInFlight(), activities.NewParentChecks(), activities.NewPlays()
	return p.o.register(r, &acts)
}

// register registers what a worker runs.
func (o *Options) register(r Registry, d *activities.Activities) []interceptor.WorkerInterceptor {
	d.Logger = o.slogger()
	shell := o.shell(d)
	d.Register(r)
	shell.Register(r)
	return interceptors(shell)
}

func (o *Options) shell(d *activities.Activities) *workflows.Shell {
	return &workflows.Shell{LogCache: d.LogCache, Plays: d.Plays, InFlight: d.InFlight, Keys: o.ApprovalKeys, Policy: o.Policy, Build: o.build(), Observers: d.Observers, Audit: o.Audit, Converter: o.Converter}
}
