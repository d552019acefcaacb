package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// Run is one run of a session. Its methods reach this run only, and never a later one of
// the session. It is safe for concurrent use; do not copy it.
type Run struct {
	client  *Client
	Session string
	// ID is the run's id. It stays the same over crashes and continue-as-new.
	ID string
	// seq is the last event of the log when a verb was last answered through this handle.
	seq atomic.Int64
	// pause is the suspension that the last pause through this handle began; nil if there was none. A
	// hook may deny it.
	pause atomic.Pointer[string]
	// ending is set once a stop or a cancel was accepted: the run can't be suspended any
	// more.
	ending atomic.Bool
	// ties are the contexts that end the run.
	ties ties
}

// Status asks the run for its status. It needs a worker: [agent.CodeNoWorker] and
// [agent.CodeTimeout] mean that none answers.
func (r *Run) Status(ctx context.Context) (agent.RunStatus, error) {
	info, err := r.execution(ctx)
	if err != nil {
		return agent.RunStatus{}, err
	}
	s, err := signals.Status.Ask(ctx, r.client.temporal, r.Session, info.GetExecution().GetRunId(), signals.None{})
	if err != nil {
		return s, fmt.Errorf("asking session %s for its status: %w", r.Session, err)
	}
	return s, nil
}

// execution returns the run's latest execution as far as it is known: the session's
// current one if it belongs to this run, else the run's first. The current one comes
// first, because the server deletes the first execution of a long run after its retention, and
// shows an execution that was reset as terminated.
func (r *Run) execution(ctx context.Context) (*workflowpb.WorkflowExecutionInfo, error) {
	info, err := r.describe(ctx, "")
	if err == nil && info.GetFirstRunId() != r.ID {
		info, err = r.describe(ctx, r.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for session %s: %w", r.Session, err)
	}
	return info, nil
}

// stored returns the Outcome of a run that Temporal has forgotten.
func (r *Run) stored(ctx context.Context) (*agent.Outcome, error) {
	view, err := r.client.view(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(view.Events()) {
		if e.Outcome != nil && e.Outcome.Run == r.ID {
			return e.Outcome, nil
		}
	}
	return nil, agent.Errorf(agent.CodeNotFound, "run %s of session %s: Temporal no longer has it, and the store has no outcome of it", r.ID, r.Session)
}

// Result waits for the run's end and returns its Outcome. The error only means that the
// outcome is unknown. How a run failed is in the Outcome: see [agent.Outcome.Err].
func (r *Run) Result(ctx context.Context) (*agent.Outcome, error) {
	o, err := r.result(ctx)
	r.settle(err == nil)
	return o, err
}

func (r *Run) result(ctx context.Context) (*agent.Outcome, error) {
	info, err := r.execution(ctx)
	if errors.Is(err, agent.CodeNotFound) && r.client.log != nil {
		return r.stored(ctx)
	}
	for execution := info.GetExecution().GetRunId(); err == nil; {
		var event *historypb.HistoryEvent
		if event, err = r.closeEvent(ctx, execution); err != nil {
			break
		}
		// The run continued as new: its next execution may have ended as well.
		if next := event.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(); next != "" {
			execution = next
			continue
		}
		var o *agent.Outcome
		if o, err = r.outcome(ctx, execution); err == nil {
			return o, nil
		}
	}
	if ctx.Err() != nil {
		err = durable.FromRPC(ctx.Err()) // a cancelled call returns many kinds of errors
	}
	return nil, fmt.Errorf("waiting for session %s: %w", r.Session, err)
}

func (r *Run) describe(ctx context.Context, execution string) (*workflowpb.WorkflowExecutionInfo, error) {
	return durable.Thrice(ctx, func() (*workflowpb.WorkflowExecutionInfo, error) {
		return r.client.describe(ctx, r.Session, execution)
	})
}

// closeEvent waits until an execution is closed, and returns the event that closed it. The
// server may lose the notice of a long poll, so closeEvent also looks, less and less often.
func (r *Run) closeEvent(ctx context.Context, execution string) (*historypb.HistoryEvent, error) {
	// The poll has no deadline: near one, the server answers at once, and this loop would poll
	// without a pause.
	poll, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	begin := func() <-chan *historypb.HistoryEvent {
		done := make(chan *historypb.HistoryEvent, 1)
		go func() {
			event, _ := r.closing(poll, execution, true) // if it fails, the timer still asks
			done <- event
		}()
		return done
	}
	looks := newPollTimer()
	defer looks.stop()
	for done := begin(); ; {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case event := <-done:
			if event != nil {
				return event, nil
			}
			done = nil
		case <-looks.due():
			looks.next()
			if done == nil {
				done = begin()
			}
		}
		now, err := r.describe(ctx, execution)
		if err != nil {
			return nil, err
		}
		if !durable.Closed(now) {
			continue
		}
		event, err := durable.Thrice(ctx, func() (*historypb.HistoryEvent, error) { return r.closing(ctx, execution, false) })
		if event != nil || err != nil {
			return event, err
		}
	}
}

// closing returns the event that closed an execution; nil if there is none.
func (r *Run) closing(ctx context.Context, execution string, wait bool) (*historypb.HistoryEvent, error) {
	events := r.client.temporal.GetWorkflowHistory(ctx, r.Session, execution, wait, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, durable.FromRPC(err)
		}
		if closes[e.GetEventType()] {
			return e, nil
		}
	}
	return nil, nil
}

var closes = map[enums.EventType]bool{
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:        true,
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:           true,
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:        true,
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:         true,
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:       true,
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW: true,
}

// outcome returns the Outcome of an execution that is closed. A run that was terminated could not
// write one, so it is made of what listings know (docs/wire.md §6).
func (r *Run) outcome(ctx context.Context, execution string) (*agent.Outcome, error) {
	o := &agent.Outcome{}
	err := r.client.temporal.GetWorkflow(ctx, r.Session, execution).Get(ctx, o)
	var app *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	var terminated *temporal.TerminatedError
	var timedOut *temporal.TimeoutError
	switch {
	case errors.As(err, &app) && app.HasDetails():
		err = app.Details(o)
	case errors.As(err, &cancelled) && cancelled.HasDetails():
		err = cancelled.Details(o)
	case errors.As(err, &cancelled):
		return r.terminatedOutcome(ctx, execution, agent.StatusCancelled, agent.ReasonRequested, nil)
	case errors.As(err, &terminated):
		return r.terminatedOutcome(ctx, execution, agent.StatusCancelled, agent.ReasonTerminated, nil)
	case errors.As(err, &timedOut):
		return r.terminatedOutcome(ctx, execution, agent.StatusFailed, agent.ReasonTimedOut, agent.Errorf(agent.CodeLimitTime, "the workflow's execution timeout ended the run"))
	case errors.As(err, &app):
		return r.terminatedOutcome(ctx, execution, agent.StatusFailed, string(agent.CodeInternal), agent.Errorf(agent.CodeInternal, "%s", app.Message()))
	}
	if err == nil && o.Type != "outcome" {
		err = agent.Errorf(agent.CodeIncompatible, "it has no outcome")
	}
	if err != nil {
		return nil, fmt.Errorf("reading its outcome: %w", durable.FromRPC(err))
	}
	return o, nil
}

// terminatedOutcome returns the Outcome of a run that could not write its own.
func (r *Run) terminatedOutcome(ctx context.Context, execution string, status agent.Status, reason string, cause *agent.Error) (*agent.Outcome, error) {
	info, err := r.describe(ctx, execution)
	if err != nil {
		return nil, fmt.Errorf("reading how it ended: %w", err)
	}
	memo := ReadMemo(info)
	return &agent.Outcome{
		V: agent.Version, Type: "outcome", Session: r.Session, Run: r.ID, Agent: agentOf(info), Status: status, Reason: reason, Error: cause,
		Turns: memo.Turns, Cost: memo.Cost, Started: info.GetStartTime().AsTime(), Ended: info.GetCloseTime().AsTime(),
	}, nil
}

// ReadMemo returns what a listing knows about a run. A run without a memo of ours is pending since
// its start: the plain temporal CLI starts it so, until a worker takes it. For nil, and for a memo that this
// program can't decode, it is the zero value.
func ReadMemo(info *workflowpb.WorkflowExecutionInfo) (m agent.Memo) {
	p, ok := info.GetMemo().GetFields()[agent.MemoKey]
	switch {
	case ok:
		_ = converter.GetDefaultDataConverter().FromPayload(p, &m) // one that this program can't decode is ignored
	case info != nil:
		m.Status, m.Since = agent.StatusPending, info.GetStartTime().AsTime()
	}
	return m
}
