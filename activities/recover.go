package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// maxClaims is how many claims a head keeps: runs that have started and stored nothing.
const maxClaims = 20

// maxCarries is how many executions lastOf follows. A run mostly stores something before
// it has continued as new so often.
const maxCarries = 100

// terminatedRuns returns the executions of earlier runs of the session that could not store
// their last events, the latest first: they were ended from outside, or the store refused
// their end. lost says why the last events of the head's run are unavailable, if that run has
// not ended and Temporal no longer has it.
func (d *Activities) terminatedRuns(ctx context.Context, head store.Head, session string) (list []string, lost string, err error) {
	if d.Client == nil { // a test environment, which has one run
		return nil, "", nil
	}
	// Claims come before the head's run: those runs began later.
	for _, claim := range slices.Backward(head.Claims) {
		id, _, err := d.cutOff(ctx, session, claim)
		if err != nil {
			return nil, "", err
		}
		if id != "" {
			list = append(list, id)
		}
	}
	if head.Run == "" || head.Status.Ended() {
		return list, "", nil
	}
	// A failed run of the head always counts: its failure may not say that its end is not stored.
	id, known, err := d.cutOff(ctx, session, cmp.Or(head.Execution, head.Run), enums.WORKFLOW_EXECUTION_STATUS_FAILED)
	switch {
	case err != nil:
		return nil, "", err
	case id != "" && !slices.Contains(list, id):
		list = append(list, id)
	case !known && len(list) == 0:
		lost = fmt.Sprintf("run %s did not come to its end, and Temporal knows nothing of it any more", head.Run)
	}
	return list, lost, nil
}

// cutOff returns the last execution of the run that an execution belongs to, if that run was
// ended from outside or could not store its end. known reports whether Temporal has it.
// also lists further statuses that count.
func (d *Activities) cutOff(ctx context.Context, session, execution string, also ...enums.WorkflowExecutionStatus) (id string, known bool, err error) {
	last, status, err := d.lastOf(ctx, session, execution)
	if last == "" || err != nil {
		return "", false, err
	}
	cut := slices.Contains(append(also, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT), status)
	if !cut && status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		if cut, err = d.unsaved(ctx, session, last); err != nil {
			return "", true, err
		}
	}
	if cut {
		return last, true, nil
	}
	return "", true, nil
}

// unsaved reports whether a closed execution says that the store does not have its end.
func (d *Activities) unsaved(ctx context.Context, session, execution string) (bool, error) {
	o := agent.Outcome{}
	if err := d.Client.GetWorkflow(ctx, session, execution).Get(ctx, &o); err != nil {
		if !ended(err) {
			return false, durable.FromRPC(err)
		}
		o = durable.OutcomeOf(err)
	}
	return o.Unsaved != nil, nil
}

// lastOf returns the last execution of the run that an execution belongs to; empty if
// Temporal does not have it.
func (d *Activities) lastOf(ctx context.Context, session, execution string) (id string, status enums.WorkflowExecutionStatus, err error) {
	for range maxCarries {
		described, err := d.Client.DescribeWorkflowExecution(ctx, session, execution)
		switch {
		case errors.As(err, new(*serviceerror.NotFound)):
			return "", status, nil
		case err != nil:
			return "", status, durable.FromRPC(err)
		}
		if status = described.GetWorkflowExecutionInfo().GetStatus(); status != enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
			return execution, status, nil
		}
		if execution, err = d.successor(ctx, session, execution); err != nil {
			return "", status, err
		}
	}
	return execution, status, nil
}

// successor returns the execution that continued another one as new.
func (d *Activities) successor(ctx context.Context, session, execution string) (string, error) {
	last := d.Client.GetWorkflowHistory(ctx, session, execution, false, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for last.HasNext() {
		e, err := last.Next()
		if err != nil {
			return "", durable.FromRPC(err)
		}
		if next := e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(); next != "" {
			return next, nil
		}
	}
	return "", agent.Errorf(agent.CodeInternal, "execution %s of session %s was carried over, and does not say into which", execution, session)
}

// recoverTries is how often a terminated run is queried for its last events. Then the
// next run continues without them.
const recoverTries = 8

// recover stores the last events of the latest run that was ended from outside. It
// queries the closed execution for its state. The machine then ends that run as it ends
// every run, so that no call is left without a result. lost says why that is impossible.
func (d *Activities) recover(ctx context.Context, in loop.LocateArgs, head store.Head) (_ store.Head, recovered, lost string, err error) {
	for _, execution := range in.TerminatedRuns {
		state, err := d.lastState(ctx, in.Session, execution)
		switch {
		case errors.Is(err, errUnwritten):
			continue // nothing of it is lost
		case err != nil && (ctx.Err() != nil || mayPass(err) && activity.GetInfo(ctx).Attempt < recoverTries):
			// Later attempts may find a worker that can replay the run. After
			// recoverTries the session continues, and its log says what is missing.
			return head, "", "", err
		case err != nil:
			return head, "", "the last events of a run before can't be had: " + err.Error(), nil
		// The head has the run's end already, or all of its events.
		case state.Run == head.Run && head.Status.Ended() || len(state.Log.Tail) == 0 && state.Log.Head == head.Digest:
			return head, "", "", nil
		}
		stored, err := d.storeTail(ctx, in, execution, head, state)
		if err != nil && !mayPass(err) && !errors.Is(err, agent.CodeStale) { // else the session could have no further run
			return head, "", fmt.Sprintf("the last events of run %s can't be stored: %s", state.Run, err), nil
		}
		return stored, state.Run, "", err
	}
	return head, "", "", nil
}

// storeTail stores a tail that its run can no longer seal. The tail is empty if only the
// head is older than the log, as after a restore from a backup.
func (d *Activities) storeTail(ctx context.Context, in loop.LocateArgs, execution string, head store.Head, state loop.State) (store.Head, error) {
	digest, seq := state.Log.Head, state.Log.Seq
	if tail := state.Log.Tail; len(tail) > 0 {
		var err error
		if digest, err = d.Log.Seal(ctx, digest, in.Session, state.Run, false, tail); err != nil {
			return head, err
		}
		seq = tail[len(tail)-1].Seq
	}
	next := store.Head{
		V: store.HeadVersion, Version: head.Version + 1, Session: in.Session, Fence: in.Fence, Run: state.Run, Execution: execution, Agent: state.Spec.Name, Status: state.End.Outcome.Status,
		Digest: digest, Seq: seq, StateVersion: state.Spec.StateVersion, Retention: state.Spec.Retention, Counters: state.Counters, Receipts: state.Messages.Receipts, Backlog: state.Backlog(), Imported: head.Imported, Claims: head.Claims, Recovered: true, Updated: state.End.Outcome.Ended,
	}
	return d.putHead(ctx, next)
}

// errUnwritten means that a run never wrote to the log.
var errUnwritten = errors.New("it has no part in the log")

// lastState returns the state of a closed execution, with its end.
func (d *Activities) lastState(ctx context.Context, session, execution string) (state loop.State, err error) {
	closed, err := d.Client.DescribeWorkflowExecution(ctx, session, execution)
	if err != nil {
		return state, durable.FromRPC(err)
	}
	if state, err = d.machineState(ctx, session, execution); err != nil {
		return state, err
	}
	if state.HasNoLog() {
		return state, errUnwritten
	}
	open, err := signals.ReadTail(ctx, d.Client, session, execution)
	if err != nil {
		return state, err
	}
	// The machine's query leaves the tail out, since it can be large.
	state.Log.Tail = open.Events
	state, _, err = loop.Step(state, momentOf(closed.GetWorkflowExecutionInfo()), cutOf(closed.GetWorkflowExecutionInfo()))
	return state, err
}

// machineState queries an execution for its state, without the tail.
func (d *Activities) machineState(ctx context.Context, session, execution string) (state loop.State, err error) {
	raw, err := signals.Machine.Ask(ctx, d.Client, session, execution, signals.None{})
	if err != nil {
		return state, err
	}
	return loop.ReadState(raw)
}

// momentOf returns the moment at which an execution was closed from outside. No history
// has that step, so no older revision is needed for it.
func momentOf(info *workflowpb.WorkflowExecutionInfo) loop.Moment {
	return loop.Moment{At: info.GetCloseTime().AsTime().UTC(), Revision: loop.Revision}
}

func cutOf(info *workflowpb.WorkflowExecutionInfo) loop.Terminated {
	if info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT {
		return loop.Terminated{Reason: agent.ReasonTimedOut, Err: agent.Errorf(agent.CodeLimitTime, "the workflow's execution timeout ended the run")}
	}
	return loop.Terminated{Reason: agent.ReasonTerminated}
}
