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
	"github.com/fermata-agents/fermata/signals"
)

// startChild starts a run below this one, as a child workflow. One in the
// background has to outlive this execution, which a new one replaces one day: it
// looks itself whether its parent still lives. One that this run waits for is
// cancelled by the server when this run closes, however that happens.
func (r *run) startChild(ctx workflow.Context, e loop.StartChild) {
	policy := enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL
	if e.Background {
		policy = enums.PARENT_CLOSE_POLICY_ABANDON
	}
	now := workflow.Now(ctx).UTC()
	start := agent.Start{
		V: agent.Version, Agent: e.Agent, Input: agent.Input{Text: handoff.Task(e.Task, e.Context)}, By: "agent:" + r.state.Session, Limits: e.Limits,
		Meta: agent.TraceMeta(r.state.Stint.Traceparent(r.state.Run)),
	}
	memo := agent.Memo{V: agent.Version, Status: agent.Pending, Since: now}
	if e.Birth.Grant != nil {
		memo.Granted, memo.Left = agent.RoomOf(*e.Birth.Grant), agent.RoomOf(*e.Birth.Grant)
	}
	if memo.Task = start.Input.Task(); r.state.Spec.Redact {
		memo.Task = ""
	}
	f := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: e.Session, ParentClosePolicy: policy, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(signals.Attributes(e.Agent, agent.Pending, now)...),
		StaticSummary:         e.Agent,
		Memo:                  map[string]any{agent.MemoKey: memo},
	}), signals.WorkflowType, start, nil, &e.Birth)
	started := f.GetChildWorkflowExecution()
	r.when(started, func() {
		var execution workflow.Execution
		if err := started.Get(ctx, &execution); err != nil {
			r.take(loop.ChildStarted{Session: e.Session, Err: agent.Errorf(agent.ChildFailed, "the agent could not be started: %w", err)})
			return
		}
		r.take(loop.ChildStarted{Session: e.Session, Run: execution.RunID})
	})
	r.when(f, func() {
		o := agent.Outcome{}
		if err := f.Get(ctx, &o); err != nil {
			o = activities.OutcomeOf(err)
		}
		o.Session = e.Session
		r.take(loop.ChildEnded{Session: e.Session, Outcome: &o})
	})
}

// take steps an input of a run that is not over yet.
func (r *run) take(in loop.Input) {
	if !r.over {
		r.must(in)
	}
}

// tell sends a signal to another run, and does something when that is known to
// have arrived or failed. The server keeps no order among signals that are under way
// at once, and a resume that came before its pause would leave the run below held for
// good: so one is under way to a session at a time. (By a number a run below could
// only leave out what comes late, and a resume may have words with it.) An interrupt
// waits for what was said just before it to be at the server, which is one round trip;
// what is in flight has been given up by then.
func (r *run) tell(ctx workflow.Context, session, name string, what any, then func(error)) {
	send := func() {
		f := workflow.SignalExternalWorkflow(ctx, session, "", name, what)
		r.when(f, func() {
			if r.unsent[session] = r.unsent[session][1:]; len(r.unsent[session]) > 0 {
				r.unsent[session][0]()
			} else {
				delete(r.unsent, session)
			}
			then(f.Get(ctx, nil))
		})
	}
	if r.unsent[session] = append(r.unsent[session], send); len(r.unsent[session]) == 1 {
		send()
	}
}

// tellChild passes an order on. A child that has ended needs none.
func (r *run) tellChild(ctx workflow.Context, e loop.TellChild) {
	r.tell(ctx, e.Session, signals.Hold, e.Order, func(error) {})
}

// passOn says a verb to a run below. Where nobody takes it, that is shown.
func (r *run) passOn(ctx workflow.Context, e loop.PassOn) {
	r.tell(ctx, e.Session, string(e.Command.Verb()), e.Command, func(err error) {
		if err != nil {
			r.take(loop.Refused{Verb: string(e.Command.Verb()), Err: agent.Errorf(agent.Stale, "%s could not be passed on to %s: %w", e.Command.Verb(), e.Session, err)})
		}
	})
}

// tellParent reports to the run above. Where nobody takes it, the run looks whether
// there is one.
func (r *run) tellParent(ctx workflow.Context, e loop.TellParent) {
	if e.Report.Status.Ended() {
		r.lastReport = workflow.SignalExternalWorkflow(ctx, e.Session, "", signals.Child, e.Report)
		return
	}
	r.tell(ctx, e.Session, signals.Child, e.Report, func(err error) {
		if err != nil && !r.over && r.state.Parent.Birth != nil {
			r.lease(ctx, loop.Lease{Parent: r.state.Parent.Birth.Parent})
		}
	})
}

// lease looks whether the parent still lives.
func (r *run) lease(ctx workflow.Context, e loop.Lease) {
	await(ctx, r, r.isGone(ctx, e.Parent), func(end agent.Status, err *agent.Error) loop.Input {
		return loop.Leased{Gone: end != "" && err == nil}
	})
}

// isGone asks the server whether another run is at its end, and at which.
func (r *run) isGone(ctx workflow.Context, other agent.Parent) durable.Future[agent.Status] {
	return activities.Lease.StartLocal(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: 5 * time.Second, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	}, other)
}

// lookAfter fetches how a child has ended that is gone. One that has said so is closed by
// the server a moment later: the step for that is tried again for a while.
func (r *run) lookAfter(ctx workflow.Context, e loop.LookAfter) {
	in := activities.FetchInput{Session: e.Session, Run: e.Run, Ending: e.Ending}
	ended := func(o *agent.Outcome, err *agent.Error) loop.Input {
		if o == nil || err != nil { // it lives, or nobody can tell: there are more looks
			return nil
		}
		return loop.ChildEnded{Session: e.Session, Outcome: o}
	}
	if e.Ending {
		start(ctx, r, step[activities.FetchInput, *agent.Outcome]{do: activities.Fetch, in: in, options: fetching, lane: activities.StoreLane}, ended)
		return
	}
	await(ctx, r, activities.Fetch.StartLocal(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: 5 * time.Second, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	}, in), ended)
}

// fetching are the options of the step that waits for a child's end: the child waits at most
// [lastReportTime] before it closes.
var fetching = workflow.ActivityOptions{
	StartToCloseTimeout: 10 * time.Second, ScheduleToCloseTimeout: 2 * lastReportTime,
	RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 5 * time.Second},
}

// fold makes the handoff of what is known, what the model said, and what the runs
// below have handed over.
func fold(e loop.Fold) agent.Handoff {
	h := e.Known
	for _, c := range e.Children {
		if c.Outcome == nil {
			h.Children = append(h.Children, handoff.Unheard(c.Session, c.Run, c.Agent, c.Task))
			continue
		}
		h.Children = append(h.Children, handoff.OfOutcome(*c.Outcome, c.Task))
	}
	return handoff.Bound(handoff.Complete(h, e.Said))
}

// readTree makes what another run says the machine's input.
func readTree(revision int, s signal) (loop.Input, *agent.Error) {
	switch s.name {
	case signals.Child:
		var r agent.ChildReport
		err := durable.DecodeOwnAt(revision, s.data, &r, maxReport)
		return loop.Reported{Report: r}, durable.Within(s.name, err)
	case signals.Grant:
		var o agent.GrantOrder
		err := durable.DecodeOwnAt(revision, s.data, &o, maxReport)
		return loop.Granted{Order: o}, durable.Within(s.name, err)
	default:
		var o agent.HoldOrder
		err := durable.DecodeOwnAt(revision, s.data, &o, maxReport)
		return loop.Ordered{Order: o}, durable.Within(s.name, err)
	}
}

// maxReport bounds what one run tells another: a handoff is in it.
const maxReport = 2 << 20
