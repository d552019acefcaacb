package evalrun

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/testsuite/eval"
)

// Progress is where an evaluation stands.
type Progress = eval.Progress

// input is the input of an evaluation's workflow.
type input struct {
	eval.Info
	Definition *eval.Suite `json:"definition"`
	// Digests are the SHA-256 of the suite's files, by path: every trial gets the same bytes.
	Digests map[string]string `json:"digests,omitempty"`
}

// evaluation is the state of an evaluation's workflow.
type evaluation struct {
	input
	progress Progress
	plan     []place   // the trials that have not begun
	running  []running // in the order in which they began
	// reserved is what the running trials may still cost.
	reserved agent.USD
	// last is when the last trial began, for the rate.
	last time.Time
	// stopTrials cancels the running trials.
	stopTrials workflow.CancelFunc
	// due ends the time of the budget, and pause lets the rate begin the next trial; nil if
	// nothing is waited for. over is the evaluation's cancellation, until it was seen.
	due, pause workflow.Future
	over       workflow.Channel
}

// running is a trial that has begun and has not ended.
type running struct {
	place
	part  agent.USD
	trial workflow.Future
}

// place is one trial of the plan.
type place struct{ at, n int }

// evaluate is the workflow of an evaluation. It returns where it stood at the end.
func evaluate(ctx workflow.Context, in input) (Progress, error) {
	e := &evaluation{input: in, plan: planOf(in.Definition)}
	e.progress = Progress{Done: []eval.Counts{}, Left: len(e.plan)}
	if err := progress.Handle(ctx, func(struct{}) (Progress, error) { return e.progress, nil }); err != nil {
		return e.progress, err
	}
	e.run(ctx)
	e.progress.Ended = true
	return e.progress, nil
}

// planOf lists all trials: first the first of each case. If the budget ends the
// evaluation, each case has had about as many.
func planOf(s *eval.Suite) (plan []place) {
	for n := 1; len(plan) < s.Total(); n++ {
		for i := range s.Cases {
			if n <= s.Complete(i).Trials {
				plan = append(plan, place{i, n})
			}
		}
	}
	return plan
}

// run begins the trials and waits for them.
func (e *evaluation) run(ctx workflow.Context) {
	// Not cancelled with the evaluation: its trials first end their runs.
	below, _ := workflow.NewDisconnectedContext(ctx)
	below, e.stopTrials = workflow.WithCancel(below)
	defer e.stopTrials()
	e.over = ctx.Done()
	if limit := e.Definition.Budget.Time; limit > 0 {
		e.due = workflow.NewTimer(below, time.Duration(limit))
	}
	for {
		e.beginAll(below)
		if len(e.running) == 0 && (len(e.plan) == 0 || e.progress.Stopped != "") {
			return
		}
		e.next(ctx)
	}
}

// next waits for the next thing that happens. The selector is a new one each time, since
// one with a closed channel would never wait again.
func (e *evaluation) next(ctx workflow.Context) {
	s := workflow.NewSelector(ctx)
	for _, r := range e.running {
		s.AddFuture(r.trial, func(workflow.Future) { e.end(ctx, r) })
	}
	if e.over != nil {
		s.AddReceive(e.over, func(workflow.ReceiveChannel, bool) { e.over = nil; e.stop(eval.StopCancelled) })
	}
	if e.due != nil {
		s.AddFuture(e.due, func(workflow.Future) { e.due = nil; e.stop(eval.StopTime) })
	}
	if e.pause != nil {
		s.AddFuture(e.pause, func(workflow.Future) { e.pause = nil })
	}
	s.Select(ctx)
}

// stop begins no more trials. A budget of money lets those that run end; they have their
// part of it.
func (e *evaluation) stop(why eval.Stop) {
	if e.progress.Stopped == "" {
		e.progress.Stopped = why
	}
	if why != eval.StopCost {
		e.stopTrials()
	}
}

// beginAll begins the trials that may begin now.
func (e *evaluation) beginAll(ctx workflow.Context) {
	for len(e.plan) > 0 && e.progress.Stopped == "" && e.pause == nil && len(e.running) < e.Definition.Parallel() {
		if rate := e.Definition.PerMinute; rate > 0 && !e.last.IsZero() {
			if wait := e.last.Add(time.Minute / time.Duration(rate)).Sub(workflow.Now(ctx)); wait > 0 {
				e.pause = workflow.NewTimer(ctx, wait)
				return
			}
		}
		part, ok := e.part()
		if !ok {
			// What runs may give back a part of its reserve.
			if len(e.running) == 0 {
				e.stop(eval.StopCost)
			}
			return
		}
		p := e.plan[0]
		e.plan, e.last = e.plan[1:], workflow.Now(ctx)
		e.begin(ctx, p, part)
	}
}

// part returns what the next trial may cost: an equal part of what is neither spent nor
// reserved, for each trial that may still run at once. Zero means that there is no budget.
func (e *evaluation) part() (part agent.USD, ok bool) {
	whole := e.Definition.Budget.CostUSD
	if whole == 0 {
		return 0, true
	}
	slots := min(e.Definition.Parallel()-len(e.running), len(e.plan))
	part = (whole - e.progress.Spent - e.reserved) / agent.USD(slots)
	return part, part > 0
}

// begin begins a trial as a child.
func (e *evaluation) begin(ctx workflow.Context, p place, part agent.USD) {
	c := e.Definition.Complete(p.at)
	in := trialInput{ID: e.ID, Suite: e.Suite, Case: c, N: p.n, Limits: e.Definition.Limits, Part: part}
	for _, path := range c.Files {
		in.Digests = append(in.Digests, e.Digests[path])
	}
	f := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: trialID(e.ID, c.Name, p.n), WaitForCancellation: true,
		// A second one would make the trial twice.
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
	}), trialType, in)
	e.running, e.reserved = append(e.running, running{p, part, f}), e.reserved+part
	e.count()
}

// end takes in a trial that has ended.
func (e *evaluation) end(ctx workflow.Context, r running) {
	t := eval.Trial{}
	if err := r.trial.Get(ctx, &t); err != nil {
		// Its runs may have cost anything up to its part.
		t.Counts = eval.Counts{State: eval.StateError, Cost: r.part}
		if temporal.IsCanceledError(err) {
			t.State = eval.StateLeftOut
		}
	}
	t.Case, t.N = e.Definition.Cases[r.at].Name, r.n
	e.running = slices.DeleteFunc(e.running, func(o running) bool { return o.place == r.place })
	e.reserved -= r.part
	e.progress.Spent += t.Cost
	e.progress.Done = append(e.progress.Done, t.Counts)
	e.count()
}

func (e *evaluation) count() { e.progress.Running, e.progress.Left = len(e.running), len(e.plan) }

// failed turns what went wrong in a trial into its record.
func failed(t *eval.Trial, err *agent.Error) {
	t.State, t.Error, t.Why = eval.StateError, err, err.Message
	if isCancelled(err) {
		t.State, t.Error, t.Why = eval.StateLeftOut, nil, "the evaluation was stopped"
	}
}

func isCancelled(err *agent.Error) bool { return err != nil && errors.Is(err, durable.ErrCancelled) }
