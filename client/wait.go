package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// Wait waits until the run is suspended or has ended, after the last verb that was sent
// through this handle. A run that waits only for a grant of its parent continues by
// itself, so it does not count as suspended.
//
// If the run is suspended, the Outcome's Status is [agent.StatusSuspended], Suspension
// says why, and Ended is zero. If no worker answers, the Outcome has only what a listing
// knows. The run does not notice who waits for it, and its history does not grow. How a
// run failed is in the Outcome: see [agent.Outcome.Err].
//
// The error [agent.CodeDenied] means that a hook has denied the pause that was sent
// through this handle; the next Wait does not return it again. Every other error only
// means that the state is unknown.
func (r *Run) Wait(ctx context.Context) (*agent.Outcome, error) {
	o, err := r.wait(ctx)
	r.settle(err == nil && o.Status.Ended())
	return o, err
}

func (r *Run) wait(ctx context.Context) (*agent.Outcome, error) {
	for {
		info, err := r.execution(ctx)
		switch {
		// After a stop or a cancel, a suspension on the way is not what the caller waits for.
		case err == nil && (durable.Closed(info) || r.ending.Load()):
			if err = r.deniedBefore(ctx, info); err == nil {
				return r.result(ctx)
			}
		case errors.Is(err, agent.CodeNotFound) && r.client.log != nil:
			return r.stored(ctx)
		case err == nil:
			var out *agent.Outcome
			pause := r.pause.Load()
			if out, err = r.awaitSuspension(ctx, info); out != nil {
				r.pause.CompareAndSwap(pause, nil) // it came, so no hook has denied it
				return out, nil
			}
		}
		if ctx.Err() != nil {
			err = durable.FromRPC(ctx.Err()) // a cancelled call returns many kinds of errors
		}
		if err != nil {
			return nil, fmt.Errorf("waiting for session %s: %w", r.Session, err)
		}
	}
}

// deniedBefore returns the error of pauseDenied for a run that has ended since.
func (r *Run) deniedBefore(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) error {
	if r.pause.Load() == nil || r.ending.Load() {
		return nil
	}
	s, err := r.status(ctx, info.GetExecution().GetRunId(), pollFor)
	if err != nil {
		return nil // the outcome says more than that no worker answers
	}
	return r.pauseDenied(s)
}

// pauseDenied returns an error if a hook has denied the pause that was sent through this handle. It does
// so once, so that a later Wait waits on. If a later suspension was denied, the one of the pause is over:
// it was denied too, or came and was resumed between two looks.
func (r *Run) pauseDenied(s agent.RunStatus) error {
	id, d := r.pause.Load(), s.SuspensionDenied
	if id == nil || d == nil || suspensionNumber(d.Suspension) < suspensionNumber(*id) || !r.pause.CompareAndSwap(id, nil) {
		return nil
	}
	e := agent.Errorf(agent.CodeDenied, "the hook %s denied the pause (%s), and the run goes on: %s", d.Hook, d.Suspension, d.Reason)
	if d.Suspension != *id { // the status has only the last denial
		e = agent.Errorf(agent.CodeDenied, "the pause (%s) is over, and the run goes on: the hook %s denied %s since", *id, d.Hook, d.Suspension)
	}
	e.Session, e.Run, e.Status = r.Session, r.ID, s.Status
	return e
}

// suspensionNumber returns the number in a suspension's id; zero if it has none.
func suspensionNumber(id string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(id, "s-"))
	return n
}

// RunOf returns the run that answered a verb. Its [Run.Wait] ignores suspensions from
// before the answer.
func (c *Client) RunOf(ack agent.Ack) *Run {
	r := &Run{client: c, Session: ack.Session, ID: ack.Run}
	r.noteAck(ack)
	return r
}

// awaitSuspension waits until an execution is suspended; it returns nil if it is closed.
// The history wakes it when listings show something new. The server may lose a notice, so
// it also looks by itself, less and less often.
func (r *Run) awaitSuspension(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) (*agent.Outcome, error) {
	history := r.client.follow(info, r.Session, false)
	defer func() { history.leave() }()
	looks := newPollTimer()
	defer looks.stop()
	for ask, news := true, history.news; ; {
		if ask {
			out, answered, denied := r.suspendedOutcome(ctx, info)
			if out != nil || denied != nil {
				return out, denied
			}
			ask = !answered
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case _, more := <-news:
			if ask = true; more {
				looks.begin()
				continue
			}
			news = nil // the execution is closed, or the poll has failed
		case <-looks.due():
			looks.next()
			if news == nil {
				history.leave()
				history = r.client.follow(info, r.Session, false)
				news = history.news
			}
		}
		now, err := r.describe(ctx, info.GetExecution().GetRunId())
		if err != nil || durable.Closed(now) {
			return nil, err
		}
		ask = ask || now.GetHistoryLength() != info.GetHistoryLength()
		info = now
	}
}

// suspendedOutcome returns the Outcome of a suspended run; nil if it is not suspended.
// The run knows most, such as the arguments of a call that waits for approval. If no
// worker answers in time, the memo has to do. denied is the error of a denied pause.
func (r *Run) suspendedOutcome(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) (out *agent.Outcome, answered bool, denied error) {
	execution := info.GetExecution().GetRunId()
	s, err := r.status(ctx, execution, pollFor)
	if err != nil {
		now, lost := r.describe(ctx, execution)
		if lost != nil || durable.Closed(now) {
			return nil, false, nil
		}
		memo := ReadMemo(now)
		if memo.Status != agent.StatusSuspended || slices.Contains(waitsFor(now), string(agent.SuspensionAwaitingBudget)) {
			return nil, false, nil
		}
		// The memo says that the run is suspended, so a longer question pays: its worker
		// may only be busy.
		if info = now; errors.Is(err, agent.CodeTimeout) {
			s, err = r.status(ctx, execution, restFor)
		}
		if err != nil {
			return &agent.Outcome{
				V: agent.Version, Type: "outcome", Session: r.Session, Run: r.ID, Agent: agentOf(info), Status: memo.Status,
				Suspension: suspensionOf(info, memo), Turns: memo.Turns, Cost: memo.Cost, Started: r.started(ctx, info),
			}, false, nil
		}
	}
	if denied := r.pauseDenied(s); denied != nil {
		return nil, true, denied
	}
	if s.Status != agent.StatusSuspended || s.Seq < r.seq.Load() || s.Suspension != nil && s.Suspension.Kind == agent.SuspensionAwaitingBudget {
		return nil, true, nil // also if it waits only for a grant: it continues by itself
	}
	out = &agent.Outcome{
		V: agent.Version, Type: "outcome", Session: s.Session, Run: s.Run, Agent: s.Agent, Status: s.Status, Reason: s.Reason,
		Suspension: s.Suspension, Turns: s.Turns, Usage: s.Usage, Cost: s.Cost, Tree: s.Tree, Started: r.started(ctx, info), Seq: s.Seq,
	}
	if s.Suspension != nil {
		out.Checkpoint = s.Suspension.Checkpoint
	}
	return out, true, nil
}

// status asks an execution for its status, and waits at most that long.
func (r *Run) status(ctx context.Context, execution string, most time.Duration) (agent.RunStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return signals.Status.Ask(ctx, r.client.temporal, r.Session, execution, signals.None{})
}

// started returns when the run began. If the server has deleted its first execution, it
// returns the start of the present one.
func (r *Run) started(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) time.Time {
	if info.GetExecution().GetRunId() != r.ID {
		if first, err := r.describe(ctx, r.ID); err == nil {
			info = first
		}
	}
	return info.GetStartTime().AsTime()
}

// suspensionOf returns what a listing knows of a suspension.
func suspensionOf(info *workflowpb.WorkflowExecutionInfo, memo agent.Memo) *agent.Suspension {
	s := &agent.Suspension{ID: memo.Suspension, Reason: memo.Reason, Turn: memo.Turn, Since: memo.Since}
	if what := waitsFor(info); len(what) > 0 {
		s.Kind = agent.SuspensionKind(what[0])
	}
	for _, q := range memo.Requests {
		s.Requests = append(s.Requests, requestOf(info, memo, q))
	}
	return s
}

// requestOf returns what a listing knows of an open request, without the call's
// arguments.
func requestOf(info *workflowpb.WorkflowExecutionInfo, memo agent.Memo, q agent.MemoRequest) agent.Request {
	r := agent.Request{
		ID: q.ID, Type: q.Type, Session: info.GetExecution().GetWorkflowId(), Run: runOf(info), Suspension: memo.Suspension, Agent: agentOf(info), Step: q.Step,
		Text: q.Text, Choices: q.Choices, Digest: q.Digest, Approvers: q.Approvers, Opened: q.Opened, Deadline: q.Deadline, Default: q.Default,
	}
	if q.Tool != "" {
		r.Call = &agent.RequestCall{Tool: q.Tool}
	}
	return r
}
