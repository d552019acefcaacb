package workflows

import (
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/handoff"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/w3ctrace"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/signals"
)

// startChild starts a child workflow. A background child, and a flow's, has to outlive this
// execution, which continue-as-new may replace; it checks itself whether its parent lives. A
// child that this run waits for is cancelled by the server when this run closes, however
// that happens.
func (r *run) startChild(ctx workflow.Context, e loop.StartChild) {
	policy := enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL
	if e.Background || e.ChildStart.Outlives {
		policy = enums.PARENT_CLOSE_POLICY_ABANDON
	}
	now := workflow.Now(ctx).UTC()
	start := agent.Start{
		V: agent.Version, Agent: e.Agent, Input: agent.Input{Text: handoff.Task(e.Task, e.Context), Parts: e.Files}, By: "agent:" + r.state.Session, Limits: e.Limits,
		Meta: w3ctrace.Meta(r.state.TraceSegment.Traceparent(r.state.Run)),
	}
	memo := agent.Memo{V: agent.Version, Status: agent.StatusPending, Since: now}
	if e.ChildStart.Grant != nil {
		memo.Granted, memo.Remaining = wire.BudgetOf(*e.ChildStart.Grant), wire.BudgetOf(*e.ChildStart.Grant)
	}
	if memo.Task = start.Input.Task(); r.state.Spec.Redact {
		memo.Task = ""
	}
	f := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: e.Session, ParentClosePolicy: policy, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(signals.Attributes(e.Agent, agent.StatusPending, now)...),
		StaticSummary:         e.Agent,
		Memo:                  map[string]any{agent.MemoKey: memo},
	}), signals.WorkflowType, start, nil, &e.ChildStart)
	started := f.GetChildWorkflowExecution()
	r.onReady(started, func() {
		var execution workflow.Execution
		// A failed start makes the second future ready, too; the machine refuses the end
		// of a child that has ended.
		if err := started.Get(ctx, &execution); err != nil {
			r.stepLive(loop.ChildStarted{Session: e.Session, Err: agent.Errorf(agent.CodeChildFailed, "the agent could not be started: %w", err)})
			return
		}
		r.stepLive(loop.ChildStarted{Session: e.Session, Run: execution.RunID})
	})
	r.onReady(f, func() {
		o := agent.Outcome{}
		if err := f.Get(ctx, &o); err != nil {
			o = durable.OutcomeOf(err)
		}
		o.Session = e.Session
		if in := r.childEnded(ctx, e.Session, &o); in != nil {
			r.stepLive(in)
		}
	})
}

// stepLive steps an input unless the run is over.
func (r *run) stepLive(in loop.Input) {
	if !r.over {
		r.stepInput(in)
	}
}

// sendSignal sends a signal to another run, and calls then when it was delivered or
// failed.
//
// One signal at a time is on its way to a session. The server keeps no order between
// signals that are sent at once, and a resume that overtook its pause would leave the
// child held for good. A sequence number is not enough: the child would drop a late
// resume with its message.
//
// An interrupt waits for the signal before it, which takes one round trip. What is in
// flight has been cancelled by then.
func (r *run) sendSignal(ctx workflow.Context, session, name string, what any, then func(error)) {
	r.enqueue(session, func() { r.signal(ctx, session, name, what, then) })
}

// signal sends what is the first entry of the outbox.
func (r *run) signal(ctx workflow.Context, session, name string, what any, then func(error)) {
	f := workflow.SignalExternalWorkflow(ctx, session, "", name, what)
	r.onReady(f, func() {
		r.sendNext(session)
		then(f.Get(ctx, nil))
	})
}

// enqueue calls send when nothing else is on its way to a session. When it is done, it must call
// sendNext.
func (r *run) enqueue(session string, send func()) {
	if r.outbox[session] = append(r.outbox[session], send); len(r.outbox[session]) == 1 {
		send()
	} else if c := r.orderCopies[session]; c != nil && c.hurry != nil {
		c.hurry()
	}
}

// sendNext sends what comes after the first entry of the outbox.
func (r *run) sendNext(session string) {
	if r.outbox[session] = r.outbox[session][1:]; len(r.outbox[session]) > 0 {
		r.outbox[session][0]()
	} else {
		delete(r.outbox, session)
		delete(r.orderCopies, session)
	}
}

// orderChild sends an order to a child. A child that has ended needs none.
func (r *run) orderChild(ctx workflow.Context, e loop.OrderChild) {
	send := func() { r.signal(ctx, e.Session, signals.ParentOrder, &e.Order, func(error) {}) }
	r.enqueue(e.Session, func() {
		if len(e.Order.Files) > 0 {
			r.copyForOrder(ctx, e.Session, &e.Order, send)
		} else {
			send()
		}
	})
}

// forward sends a verb to a child. If nobody takes it, the log shows that.
func (r *run) forward(ctx workflow.Context, e loop.ForwardCommand) {
	r.sendSignal(ctx, e.Session, string(e.Command.Verb()), e.Command, func(err error) {
		if err != nil {
			r.stepLive(loop.CommandRefused{Verb: string(e.Command.Verb()), By: e.Command.Header().By, Err: agent.Errorf(agent.CodeStale, "%s could not be passed on to %s: %w", e.Command.Verb(), e.Session, err)})
		}
	})
}

// reportToParent reports to the parent. If nobody takes the report, the run checks
// whether the parent still lives.
func (r *run) reportToParent(ctx workflow.Context, e loop.ReportToParent) {
	if e.Report.Status.Ended() {
		// Not through the outbox: once the run is over, nothing sends the next entry.
		r.finalReport = workflow.SignalExternalWorkflow(ctx, e.Session, "", signals.ChildReport, e.Report)
		return
	}
	r.sendSignal(ctx, e.Session, signals.ChildReport, e.Report, func(err error) {
		if err != nil && !r.over && r.state.Parent.Start != nil {
			r.checkParent(ctx, loop.CheckParent{Parent: r.state.Parent.Start.Parent})
		}
	})
}

// checkParent asks whether the parent still lives.
func (r *run) checkParent(ctx workflow.Context, e loop.CheckParent) {
	await(ctx, r, r.closedStatus(ctx, e.Parent), func(end agent.Status, err *agent.Error) loop.Input {
		// An unknown answer is no end: the run asks again later.
		return loop.ParentChecked{Gone: end != "" && err == nil}
	})
}

// closedStatus asks the server whether another run has ended, and how.
func (r *run) closedStatus(ctx workflow.Context, other wire.Parent) durable.Future[agent.Status] {
	return activities.CheckParent.StartLocal(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: 5 * time.Second, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	}, other)
}

// checkChild looks whether a child has ended. With Ending it has, or is about to: it has reported its
// end, and the server closes it a moment later. So a regular activity asks for the outcome, and asks
// for a while. Otherwise a local activity asks once whether the child has ended.
func (r *run) checkChild(ctx workflow.Context, e loop.CheckChild) {
	in := activities.FetchInput{Session: e.Session, Run: e.Run, Ending: e.Ending}
	if e.Ending {
		start(ctx, r, activityCall[activities.FetchInput, *agent.Outcome]{activity: activities.FetchOutcome, in: in, options: fetchOptions, lane: activities.StoreLane}, func(o *agent.Outcome, err *agent.Error) loop.Input {
			if o == nil || err != nil { // the answer is unknown: the run asks again later
				return nil
			}
			return r.childEnded(ctx, e.Session, o)
		})
		return
	}
	await(ctx, r, activities.FetchOutcome.StartLocal(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: 5 * time.Second, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	}, in), func(o *agent.Outcome, err *agent.Error) loop.Input {
		if e.Ending = o != nil && err == nil; e.Ending && !r.over {
			r.checkChild(ctx, e)
		}
		return nil // it lives, or the answer is unknown: the run asks again later
	})
}

// fetchOptions are for the activity that waits for a child's close. The child waits at
// most [finalReportTime] before it closes.
var fetchOptions = workflow.ActivityOptions{
	StartToCloseTimeout: 10 * time.Second, ScheduleToCloseTimeout: 2 * finalReportTime,
	RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 5 * time.Second},
}

// makeHandoff makes the handoff from what the run knows, the model's summary, and the
// children's handoffs.
func makeHandoff(e loop.MakeHandoff) agent.Handoff {
	h := e.Known
	for _, c := range e.Children {
		// A child whose outcome is unknown is named anyway: somebody may have to
		// look after it.
		if c.Outcome == nil {
			h.Children = append(h.Children, handoff.Missing(c.Session, c.Run, c.Agent, c.Task))
			continue
		}
		o := *c.Outcome
		o.Artifacts = e.ArtifactsOf(c.Session)
		h.Children = append(h.Children, handoff.FromOutcome(o, c.Task))
	}
	return handoff.Truncate(handoff.Complete(h, e.SummaryText))
}

// readTreeSignal makes an input of a signal from another run.
func readTreeSignal(revision int, s signal) (loop.Input, *agent.Error) {
	switch s.name {
	case signals.ChildReport:
		var r wire.ChildReport
		err := durable.DecodeOwnAt(revision, s.data, &r, maxReport)
		return loop.ChildReported{Report: r}, durable.Within(s.name, err)
	case signals.GrantOrder:
		var o wire.GrantOrder
		err := durable.DecodeOwnAt(revision, s.data, &o, maxReport)
		return loop.ParentGranted{Order: o}, durable.Within(s.name, err)
	default:
		var o wire.ParentOrder
		err := durable.DecodeOwnAt(revision, s.data, &o, maxReport)
		return loop.ParentOrdered{Order: o}, durable.Within(s.name, err)
	}
}

// maxReport bounds a signal between runs, in bytes: it may carry a handoff.
const maxReport = 2 << 20
