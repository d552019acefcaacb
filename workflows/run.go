package workflows

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/signals"
)

// Shell is the workflow fermata.run with what it needs of its process.
type Shell struct {
	// Tails is where steps in this process find the open part of a run's log.
	Tails *activities.Tails
	// Build is the version that the query status shows.
	Build string
}

// Registry is where the workflow is registered: a worker, a replayer, or a test environment.
type Registry interface {
	RegisterWorkflowWithOptions(w any, o workflow.RegisterOptions)
}

// Register registers the workflow of every agent.
func (s *Shell) Register(r Registry) {
	r.RegisterWorkflowWithOptions(s.run, workflow.RegisterOptions{Name: signals.WorkflowType})
}

// run is one execution of a run. carried is the state that the execution before
// it handed on; from outside nobody can set it.
func (s *Shell) run(outer workflow.Context, start converter.RawValue, carried *loop.State) (*agent.Outcome, error) {
	// A cancellation of the workflow is an input like others: it is the machine
	// that gives up what is in flight, and storing the transcript goes on.
	ctx, _ := workflow.NewDisconnectedContext(outer)
	r := &run{shell: s, outer: outer, selector: workflow.NewSelector(ctx)}
	r.work, r.abandon = workflow.WithCancel(ctx)
	if err := r.answerQueries(ctx); err != nil {
		return nil, err
	}
	info := workflow.GetInfo(ctx)
	if info.ContinuedExecutionRunID != "" && carried != nil {
		if carried.V > agent.Version {
			// The task fails, not the run: the build that wrote it will take it back.
			panic(agent.Errorf(agent.Incompatible, "the run's state has version %d; this build reads up to %d", carried.V, agent.Version))
		}
		r.state = *carried
		r.step(ctx, loop.Continued{})
	} else {
		in, err := signals.DecodeStart(durable.Bytes(start))
		if bad := agent.CheckSession(info.WorkflowExecution.ID); bad != nil {
			err = durable.Within("start refused", bad)
		}
		r.step(ctx, loop.Begin{Session: info.WorkflowExecution.ID, Run: info.FirstRunID, Start: in, Err: err})
	}
	r.awaitCancel(ctx)
	for !r.over {
		r.selector.Select(ctx)
	}
	return r.result()
}

// run is a run in the making: a state, and what is under way for it.
type run struct {
	shell    *Shell
	state    loop.State
	selector workflow.Selector
	// outer is the workflow's own context: the only one that a cancellation from
	// outside ends.
	outer workflow.Context
	// work is the context of model and tool calls; abandon gives them up.
	work    workflow.Context
	abandon workflow.CancelFunc
	// disarm takes the deadline's timer back.
	disarm workflow.CancelFunc
	over   bool
	next   error // continue-as-new
}

// step hands an input to the machine and performs what it asks for. An input
// that the machine refuses came too late: the run went on without it.
func (r *run) step(ctx workflow.Context, in loop.Input) {
	info := workflow.GetInfo(ctx)
	moment := loop.Moment{At: workflow.Now(ctx).UTC(), Full: info.GetContinueAsNewSuggested()}
	state, effects, err := loop.Step(r.state, moment, in)
	if err != nil {
		workflow.GetLogger(ctx).Debug("input not taken", "reason", err.Error())
		return
	}
	r.state = state
	for _, e := range effects {
		r.perform(ctx, e)
	}
}

// awaitCancel makes a cancellation of the workflow an input.
func (r *run) awaitCancel(ctx workflow.Context) {
	cancelled, settle := workflow.NewFuture(ctx)
	workflow.Go(r.outer, func(outer workflow.Context) {
		outer.Done().Receive(outer, nil)
		settle.SetValue(nil)
	})
	r.selector.AddFuture(cancelled, func(workflow.Future) { r.step(ctx, loop.Cancel{}) })
}

// result is what the workflow returns: an Outcome, as a result or as the first
// detail of a failure (wire §6).
func (r *run) result() (*agent.Outcome, error) {
	if r.next != nil {
		return nil, r.next
	}
	o := r.state.Outcome
	switch o.Status {
	case agent.Failed:
		e := *o.Error
		e.Retryable = false
		return nil, durable.Failure(&e, *o)
	case agent.Cancelled:
		return nil, temporal.NewCanceledError(*o)
	}
	return o, nil
}
