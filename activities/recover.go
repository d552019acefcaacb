package activities

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// behind finds the execution of the session's run before this one, if it was
// ended from outside: it had no time to store its last events.
func (d *Deeds) behind(ctx context.Context, session, execution string) (string, error) {
	if d.Client == nil { // a test environment, which has one run
		return "", nil
	}
	list, err := d.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: 2, Query: "WorkflowId = " + signals.Quote(session) + " AND WorkflowType = " + signals.Quote(signals.WorkflowType),
	})
	if err != nil {
		return "", durable.ArriveRPC(err)
	}
	for _, info := range list.GetExecutions() { // the latest first
		switch {
		case info.GetExecution().GetRunId() == execution:
		case info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
			return info.GetExecution().GetRunId(), nil
		default:
			return "", nil
		}
	}
	return "", nil
}

// recover brings the last events of a run that was ended from outside into the
// session's log: its state is asked of its closed execution, and the machine ends
// it as it ends every run, so that no call is left without a result. lost says
// why that can't be done.
func (d *Deeds) recover(ctx context.Context, in LocateInput, head store.Head) (_ store.Head, recovered, lost string, _ error) {
	state, err := d.lastState(ctx, in)
	switch {
	case errors.Is(err, agent.StoreUnavailable) || ctx.Err() != nil:
		return head, "", "", err
	case err != nil:
		return head, "", "the last events of the run before can't be had: " + err.Error(), nil
	case state.Run == head.Run && head.Status.Ended() || len(state.Log.Tail) == 0:
		return head, "", "", nil
	}
	tail := state.Log.Tail
	digest, err := d.Log.Seal(ctx, state.Log.Head, in.Session, state.Run, tail)
	if err != nil {
		return head, "", "", err
	}
	next := store.Head{
		V: agent.Version, Version: head.Version + 1, Session: in.Session, Run: state.Run, Begun: state.Started, Agent: state.Spec.Name, Status: state.Outcome.Status,
		Digest: digest, Seq: tail[len(tail)-1].Seq, State: state.Spec.StateVersion, Numbers: state.Numbers, Posts: state.Posts, Imported: head.Imported, Updated: state.Outcome.Ended,
	}
	next.Version, err = d.putHead(ctx, next)
	return next, state.Run, "", err
}

// lastState is the state of a closed execution, after its end.
func (d *Deeds) lastState(ctx context.Context, in LocateInput) (state loop.State, err error) {
	closed, err := d.Client.DescribeWorkflowExecution(ctx, in.Session, in.Behind)
	if err != nil {
		return state, durable.ArriveRPC(err)
	}
	raw, err := signals.State.Ask(ctx, d.Client, in.Session, in.Behind, signals.None{})
	if err != nil {
		return state, err
	}
	if err := json.Unmarshal(raw, &state); err != nil {
		return state, agent.Errorf(agent.Incompatible, "reading its state: %w", err)
	}
	if state.V > agent.Version {
		return state, agent.Errorf(agent.Incompatible, "its state has version %d; this build reads up to %d", state.V, agent.Version)
	}
	state, _, err = loop.Step(state, loop.Moment{At: closedAt(closed.GetWorkflowExecutionInfo())}, cutOf(closed.GetWorkflowExecutionInfo()))
	return state, err
}

func closedAt(info *workflowpb.WorkflowExecutionInfo) time.Time {
	return info.GetCloseTime().AsTime().UTC()
}

func cutOf(info *workflowpb.WorkflowExecutionInfo) loop.Cut {
	if info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT {
		return loop.Cut{Reason: agent.ReasonTimedOut, Err: agent.Errorf(agent.LimitTime, "the workflow's execution timeout ended the run")}
	}
	return loop.Cut{Reason: agent.ReasonTerminated}
}
