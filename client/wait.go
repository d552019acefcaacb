package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// Wait waits until the run rests or ends, after whatever was said through this
// handle. A run that waits for nothing but a grant from the parent goes on by itself, and
// does not count as resting. Where it rests the Outcome's Status is [agent.StatusSuspended], Suspension
// tells why, and Ended is zero; of a rest that no worker tells, only what a
// listing knows is there. The run does not depend on anybody who waits, and its
// history does not grow by it. The error tells only that nothing can be known:
// how a run failed is in the Outcome, see [agent.Outcome.Err].
func (r *Run) Wait(ctx context.Context) (*agent.Outcome, error) {
	for {
		info, err := r.execution(ctx)
		switch {
		case err == nil && (durable.Closed(info) || r.ending.Load()):
			return r.Result(ctx)
		case errors.Is(err, agent.CodeNotFound) && r.client.log != nil:
			return r.stored(ctx)
		case err == nil:
			var out *agent.Outcome
			if out, err = r.awaitSuspension(ctx, info); out != nil {
				return out, nil
			}
		}
		if ctx.Err() != nil {
			err = durable.FromRPC(ctx.Err()) // a call that is cut off has many names
		}
		if err != nil {
			return nil, fmt.Errorf("waiting for session %s: %w", r.Session, err)
		}
	}
}

// RunOf is the run that has answered a verb. Its [Run.Wait] passes over rests from before
// the answer.
func (c *Client) RunOf(ack agent.Ack) *Run {
	r := &Run{client: c, Session: ack.Session, ID: ack.Run}
	r.noteSeq(ack.Seq)
	return r
}

// awaitSuspension waits until an execution rests; nil if it is closed. The history wakes it
// when listings show something new, and since a notice may be lost in the server, it
// looks besides, ever more seldom.
func (r *Run) awaitSuspension(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) (*agent.Outcome, error) {
	history := r.client.follow(info, r.Session, false)
	defer func() { history.leave() }()
	looks := newPollTimer()
	defer looks.stop()
	for ask, news := true, history.news; ; {
		if ask {
			out, answered := r.suspendedOutcome(ctx, info)
			if out != nil {
				return out, nil
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

// suspendedOutcome is the Outcome of a run that rests, nil if it does not. The run knows
// best, such as what a call that waits for approval was given; its memo tells where no
// worker is there, or none has time in a while.
func (r *Run) suspendedOutcome(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) (out *agent.Outcome, answered bool) {
	execution := info.GetExecution().GetRunId()
	s, err := r.status(ctx, execution, pollFor)
	if err != nil {
		now, lost := r.describe(ctx, execution)
		if lost != nil || durable.Closed(now) {
			return nil, false
		}
		memo := ReadMemo(now)
		if memo.Status != agent.StatusSuspended || slices.Contains(waitsFor(now), string(agent.SuspensionAwaitingBudget)) {
			return nil, false
		}
		if info = now; errors.Is(err, agent.CodeTimeout) {
			s, err = r.status(ctx, execution, restFor)
		}
		if err != nil {
			return &agent.Outcome{
				V: agent.Version, Type: "outcome", Session: r.Session, Run: r.ID, Agent: agentOf(info), Status: memo.Status,
				Suspension: suspensionOf(info, memo), Turns: memo.Turn, Cost: memo.Cost, Started: r.started(ctx, info),
			}, false
		}
	}
	if s.Status != agent.StatusSuspended || s.Seq < r.seq.Load() || s.Suspension != nil && s.Suspension.Kind == agent.SuspensionAwaitingBudget {
		return nil, true // also if it waits for a grant alone: it goes on by itself
	}
	return &agent.Outcome{
		V: agent.Version, Type: "outcome", Session: s.Session, Run: s.Run, Agent: s.Agent, Status: s.Status, Reason: s.Reason,
		Suspension: s.Suspension, Turns: s.Turn, Usage: s.Usage, Cost: s.Cost, Tree: s.Tree, Started: r.started(ctx, info), Seq: s.Seq,
	}, true
}

// status asks an execution for its status, for so long.
func (r *Run) status(ctx context.Context, execution string, most time.Duration) (agent.RunStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return signals.Status.Ask(ctx, r.client.temporal, r.Session, execution, signals.None{})
}

// started is when the run began; of one whose first execution is gone, when its
// present one did.
func (r *Run) started(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) time.Time {
	if info.GetExecution().GetRunId() != r.ID {
		if first, err := r.describe(ctx, r.ID); err == nil {
			info = first
		}
	}
	return info.GetStartTime().AsTime()
}

// suspensionOf is what a listing knows of a suspension.
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

// requestOf is what a listing knows of an open request: not the call's arguments.
func requestOf(info *workflowpb.WorkflowExecutionInfo, memo agent.Memo, q agent.MemoRequest) agent.Request {
	r := agent.Request{
		ID: q.ID, Type: q.Type, Session: info.GetExecution().GetWorkflowId(), Run: runOf(info), Suspension: memo.Suspension, Agent: agentOf(info),
		Text: q.Text, Choices: q.Choices, Digest: q.Digest, Approvers: q.Approvers, Opened: q.Opened, Deadline: q.Deadline,
	}
	if q.Tool != "" {
		r.Call = &agent.RequestCall{Tool: q.Tool}
	}
	return r
}
