package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/signals"
)

// tryFinish ends this execution if it can, and reports whether it is over. Before the run
// continues as new, all signals must be taken and the outbox must be empty: the next
// execution gets no signal of this one, and can't send its messages. An end of a child that
// waits for its files must be taken, too: the next execution would have to ask for it again.
func (r *run) tryFinish() bool {
	if !r.continueAsNew || r.over {
		return r.over
	}
	switch {
	case r.state.Phase != loop.RunContinuing || r.state.Log.SealingSeq > 0 || r.state.AsksHook():
		r.continueAsNew = false // something came to be stored, a resume that asks a hook, or a stop or an end
	case len(r.outbox) > 0, len(r.copiesOf) > 0:
	case r.outer.Err() != nil:
		r.continueAsNew = false // a cancellation would be lost with this execution
		r.stepInput(loop.Cancel{})
	default:
		by := carried{From: workflow.GetInfo(r.ctx).WorkflowExecution.RunID}
		if r.execution != r.state.Run { // the workflow was reset
			by.Execution = r.execution
		}
		// The state is encoded here. Updates of this task have run already: the SDK runs
		// their handlers before this coroutine. So nothing can change the state after
		// this line.
		r.over, r.continueAsNewErr = true, workflow.NewContinueAsNewError(r.ctx, signals.WorkflowType, nil, &r.state, by)
	}
	return r.over
}

// result returns the Outcome, as a result or as the first detail of a failure
// (docs/wire.md §6).
func (r *run) result() (*agent.Outcome, error) {
	if r.continueAsNewErr != nil {
		return nil, r.continueAsNewErr
	}
	o := r.state.End.Outcome
	switch o.Status {
	case agent.StatusFailed:
		// A retry policy of the workflow must not run it again: fermata retry does that,
		// from its log.
		e := *o.Error
		e.Retryable = false
		return nil, durable.Failure(&e, *o)
	case agent.StatusCancelled:
		return nil, temporal.NewCanceledError(*o)
	}
	return o, nil
}
