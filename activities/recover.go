package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// maxBehind is how many executions before a run are looked at. Runs that have failed
// or were cancelled are not among them, but for the one that the head is of: however
// many starts came to nothing, they don't hide one that was terminated.
const maxBehind = 20

// behind finds the executions of the session's runs before this one that were ended
// from outside, the latest first, as far back as the run that the head is of, or
// one that has ended by itself: they had no time to store their last events. lost says
// why the last events of the head's run can't be had, where it has not come to its end
// and Temporal knows of it no more.
func (d *Deeds) behind(ctx context.Context, head store.Head, session, execution string) (list []string, lost string, err error) {
	if d.Client == nil { // a test environment, which has one run
		return nil, "", nil
	}
	page, err := d.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: maxBehind, Query: fmt.Sprintf("WorkflowId = %s AND WorkflowType = %s AND (ExecutionStatus NOT IN ('Failed', 'Canceled') OR RunId = %s)",
			signals.Quote(session), signals.Quote(signals.WorkflowType), signals.Quote(head.Run)),
	})
	if err != nil {
		return nil, "", durable.ArriveRPC(err)
	}
	known := head.Digest == "" || head.Status.Ended() || head.Import != ""
	for _, info := range page.GetExecutions() { // the latest first
		id := info.GetExecution().GetRunId()
		if id == execution {
			continue
		}
		if id == head.Run && head.Status.Ended() {
			return list, "", nil
		}
		// The listing may be behind: it is this that tells.
		described, err := d.Client.DescribeWorkflowExecution(ctx, session, id)
		if err != nil {
			return nil, "", durable.ArriveRPC(err)
		}
		info = described.GetWorkflowExecutionInfo()
		if info.GetFirstRunId() == head.Run && head.Status.Ended() {
			return list, "", nil
		}
		if cutOff(info) {
			list = append(list, id)
		}
		known = known || info.GetFirstRunId() == head.Run
	}
	if len(list) > 0 || known {
		return list, "", nil
	}
	return d.unlisted(ctx, session, head.Run)
}

// unlisted looks for a run that no listing has: it may be too young for that, or
// forgotten.
func (d *Deeds) unlisted(ctx context.Context, session, run string) (list []string, lost string, err error) {
	described, err := d.Client.DescribeWorkflowExecution(ctx, session, run)
	switch {
	case errors.As(err, new(*serviceerror.NotFound)):
		return nil, fmt.Sprintf("run %s did not come to its end, and Temporal knows nothing of it any more", run), nil
	case err != nil:
		return nil, "", durable.ArriveRPC(err)
	case cutOff(described.GetWorkflowExecutionInfo()):
		list = []string{run}
	}
	return list, "", nil
}

// cutOff tells whether an execution was ended from outside.
func cutOff(info *workflowpb.WorkflowExecutionInfo) bool {
	s := info.GetStatus()
	return s == enums.WORKFLOW_EXECUTION_STATUS_TERMINATED || s == enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT
}

// recoverTries is how often a terminated run is asked for its last events before
// the next run goes on without them.
const recoverTries = 8

// recover brings the last events of the latest run that was ended from outside into
// the session's log: its state is asked of its closed execution, and the machine
// ends it as it ends every run, so that no call is left without a result. lost says
// why that can't be done.
func (d *Deeds) recover(ctx context.Context, in LocateInput, head store.Head) (_ store.Head, recovered, lost string, err error) {
	for _, execution := range in.Behind {
		state, err := d.lastState(ctx, in.Session, execution)
		switch {
		case errors.Is(err, errUnwritten):
			continue // nothing of it is lost
		case err != nil && (ctx.Err() != nil || mayPass(err) && activity.GetInfo(ctx).Attempt < recoverTries):
			return head, "", "", err
		case err != nil:
			return head, "", "the last events of a run before can't be had: " + err.Error(), nil
		case state.Run == head.Run && head.Status.Ended() || len(state.Log.Tail) == 0:
			return head, "", "", nil
		}
		head, err = d.keep(ctx, in.Session, execution, head, state)
		return head, state.Run, "", err
	}
	return head, "", "", nil
}

// keep stores the open part of a log that nobody will seal any more.
func (d *Deeds) keep(ctx context.Context, session, execution string, head store.Head, state loop.State) (store.Head, error) {
	tail := state.Log.Tail
	digest, err := d.Log.Seal(ctx, state.Log.Head, session, state.Run, tail)
	if err != nil {
		return head, err
	}
	next := store.Head{
		V: agent.Version, Version: head.Version + 1, Session: session, Run: state.Run, Execution: execution, Begun: state.Started, Agent: state.Spec.Name, Status: state.Outcome.Status,
		Digest: digest, Seq: tail[len(tail)-1].Seq, State: state.Spec.StateVersion, Numbers: state.Numbers, Posts: state.Posts, Inbox: state.Inbox(), Imported: head.Imported, Updated: state.Outcome.Ended,
	}
	next.Version, err = d.putHead(ctx, next)
	return next, err
}

// errUnwritten tells of a run that never had a part in the log.
var errUnwritten = errors.New("it has no part in the log")

// lastState is the state of a closed execution, after its end.
func (d *Deeds) lastState(ctx context.Context, session, execution string) (state loop.State, err error) {
	closed, err := d.Client.DescribeWorkflowExecution(ctx, session, execution)
	if err != nil {
		return state, durable.ArriveRPC(err)
	}
	raw, err := signals.Machine.Ask(ctx, d.Client, session, execution, signals.None{})
	if err != nil {
		return state, err
	}
	if err := json.Unmarshal(raw, &state); err != nil {
		return state, agent.Errorf(agent.Incompatible, "reading its state: %w", err)
	}
	if state.V > agent.Version {
		return state, agent.Errorf(agent.Incompatible, "its state has version %d; this build reads up to %d", state.V, agent.Version)
	}
	if state.Unwritten() {
		return state, errUnwritten
	}
	open, err := signals.ReadOpen(ctx, d.Client, session, execution)
	if err != nil {
		return state, err
	}
	state.Log.Tail = open.Events
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
