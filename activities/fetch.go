package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
)

// FetchOutcome returns how a child has ended, as Temporal has it and whatever the child
// has reported; nil if it is running. Without Ending the outcome has a status and no more.
var FetchOutcome = durable.Activity[FetchInput, *agent.Outcome]{Name: "fermata.fetch_outcome"}

// FetchInput names a child by what its parent knows from Temporal.
type FetchInput struct {
	Session string `json:"session"`
	Run     string `json:"run"` // the id of its first execution
	// Ending means that the child ends: it has reported that, or an activity without Ending has found
	// it. While it is still open, the error is retryable.
	Ending bool `json:"ending,omitempty"`
}

func (d *Activities) fetch(ctx context.Context, in FetchInput) (*agent.Outcome, error) {
	o, err := d.outcome(ctx, in)
	if err != nil {
		return nil, err
	}
	switch {
	case in.Ending && o != nil:
		return loop.FetchedOutcome(o), nil
	// A local activity's result is in the answer to the workflow task. Whole outcomes of 256 children
	// would be longer than the 4 MB that the server takes.
	case o != nil:
		return &agent.Outcome{V: agent.Version, Type: "outcome", Session: in.Session, Run: in.Run, Status: o.Status}, nil
	case in.Ending:
		e := agent.Errorf(agent.CodeNotFound, "run %s of session %s said that it ends, and is not closed", in.Run, in.Session)
		e.Retryable = true
		return nil, e
	}
	return nil, nil
}

// outcome returns how a run has ended, as its worker wrote it; nil if it is running.
func (d *Activities) outcome(ctx context.Context, in FetchInput) (*agent.Outcome, error) {
	described, err := d.Client.DescribeWorkflowExecution(ctx, in.Session, "")
	if err := durable.FromRPC(err); errors.Is(err, agent.CodeNotFound) {
		return lostOutcome(in), nil
	} else if err != nil {
		return nil, err
	}
	info := described.GetWorkflowExecutionInfo()
	execution := in.Run // if the session has a later run by now, the client follows this run's executions
	if info.GetFirstRunId() == in.Run {
		execution = info.GetExecution().GetRunId() // also after a reset
		if !durable.Closed(info) {
			return nil, nil
		}
	}
	o := agent.Outcome{}
	if err := d.Client.GetWorkflow(ctx, in.Session, execution).Get(ctx, &o); err != nil {
		if arrived := durable.FromRPC(err); errors.Is(arrived, agent.CodeNotFound) {
			return lostOutcome(in), nil
		} else if !ended(err) {
			return nil, arrived
		}
		o = durable.OutcomeOf(err)
	}
	// An outcome that durable.OutcomeOf made names no run.
	o.Session, o.Run = in.Session, in.Run
	return &o, nil
}

// ended reports whether err says how a workflow ended, and not that the request failed.
func ended(err error) bool {
	return errors.As(err, new(*temporal.WorkflowExecutionError))
}

// lostOutcome returns the outcome of a run that Temporal no longer has.
func lostOutcome(in FetchInput) *agent.Outcome {
	return &agent.Outcome{V: agent.Version, Type: "outcome", Session: in.Session, Run: in.Run, Status: agent.StatusCancelled, Reason: "ended without a report"}
}
