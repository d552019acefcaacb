package evalrun

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
)

// trialInput is the input of a trial's workflow.
type trialInput struct {
	ID    string    `json:"id"`
	Suite string    `json:"suite"`
	Case  eval.Case `json:"case"`
	N     int       `json:"trial"`
	// Limits may lower the agent's own. Part is what the budget leaves for the trial; zero
	// means that there is no budget.
	Limits agent.Limits `json:"limits,omitzero"`
	Part   agent.USD    `json:"part_usd,omitempty"`
	// Digests are those of the case's files.
	Digests []string `json:"digests,omitempty"`
}

// Times of the steps of a trial.
const (
	stepTime     = 2 * time.Minute
	finishTime   = time.Minute
	stepAttempts = 10
)

// trying is the state of a trial's workflow.
type trying struct {
	in trialInput
	t  eval.Trial
	// seen are the requests that the person has decided about; open are those that it leaves
	// open.
	seen, open []string
	used       []int // how often each rule has decided
	answered   int
	status     agent.Status
	reason     string
	ended      bool
	failed     string // why the person failed the trial
	late       string // says that the trial's time was over; empty if it was not
	// cut means that the budget's part, and not the trial, ended the run.
	cut bool
	// renewed is how often the person has renewed the run's limit on cost. unknown means that
	// the cost of a step of the trial is not known.
	renewed int
	unknown bool
}

// trial is the workflow of one trial. It returns a record whatever happened.
func trial(ctx workflow.Context, in trialInput) (eval.Trial, error) {
	r := &trying{in: in, t: eval.Trial{Counts: eval.Counts{Case: in.Case.Name, N: in.N}}}
	if in.Case.Person != nil {
		r.used = make([]int, len(in.Case.Person.Rules))
	}
	r.do(ctx)
	return r.t, nil
}

func (r *trying) do(ctx workflow.Context) {
	// Not cancelled: a run that begins after its end was asked for would be left alone.
	after, _ := workflow.NewDisconnectedContext(ctx)
	started, err := begin.Start(after, options(stepTime, stepAttempts), beginInput{
		Session: session(r.in.ID, r.in.Case.Name, r.in.N), Evaluation: r.in.ID, Suite: r.in.Suite, Case: r.in.Case, N: r.in.N, Limits: r.limits(), Digests: r.in.Digests,
	}).Get(ctx)
	if err == nil {
		r.t.Session, r.t.Run = session(r.in.ID, r.in.Case.Name, r.in.N), started.Run
		err = r.play(ctx)
	} else {
		// A refusal starts nothing. After any other error a run may be there.
		r.unknown = !errors.Is(err, agent.CodeInvalidInput) && !errors.Is(err, agent.CodeTooLarge) && !errors.Is(err, agent.CodeDenied)
	}
	if err != nil {
		failed(&r.t, err)
	}
	// A trial that was stopped still has to end its run, and to know its cost.
	r.end(after)
	switch {
	case r.t.State != "":
	case r.cut:
		r.t.State, r.t.Why = eval.StateLeftOut, "its part of the budget was used up"
	default:
		r.grade(ctx)
	}
	r.sum()
}

// limits returns the limits of the run: the suite's, and what the budget leaves.
func (r *trying) limits() agent.Limits {
	l := r.in.Limits
	if r.in.Part > 0 && (l.CostUSD == 0 || r.in.Part < l.CostUSD) {
		l.CostUSD = r.in.Part
	}
	return l
}

// options are those of an activity. attempts is zero for any number.
func options(limit time.Duration, attempts int32) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout: limit, HeartbeatTimeout: heartbeatTime,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: 30 * time.Second, MaximumAttempts: attempts},
	}
}

// play follows the run to its end, or until it waits for what nobody gives. The person
// answers meanwhile.
func (r *trying) play(ctx workflow.Context) *agent.Error {
	limit := time.Duration(r.in.Case.Timeout)
	due, stopTimer := workflow.WithCancel(ctx)
	defer stopTimer()
	timer := workflow.NewTimer(due, limit)
	for r.status == "" {
		following, stop := workflow.WithCancel(ctx)
		// Longer than the trial: only its timer ends it.
		f := await.Start(following, options(limit+time.Hour, 0), awaitInput{Session: r.t.Session, Seen: r.seen, Open: r.open})
		late := false
		workflow.NewSelector(ctx).AddFuture(f.Raw, func(workflow.Future) {}).AddFuture(timer, func(t workflow.Future) {
			// A cancelled timer is not over: the trial was stopped, which f says too.
			late = t.Get(ctx, nil) == nil && !f.Raw.IsReady()
		}).Select(ctx)
		if late {
			stop()
		}
		if late {
			r.late = "the trial took longer than " + limit.String()
			return nil
		}
		saw, err := f.Get(ctx)
		stop()
		switch {
		case err != nil:
			return err
		case saw.Request != nil:
			if err := r.decide(ctx, saw.Request); err != nil {
				return err
			}
		default:
			r.status, r.reason, r.ended = saw.Status, saw.Reason, saw.Status.Ended()
			r.cut = r.reason == string(agent.CodeLimitCost) && r.in.Part > 0 && r.limits() != r.in.Limits
		}
	}
	return nil
}

// decide lets the person decide about a request, and sends the answer.
func (r *trying) decide(ctx workflow.Context, q *agent.Request) *agent.Error {
	key := requestKey(q)
	r.seen = append(r.seen, key)
	if r.in.Part > 0 && r.limits() != r.in.Limits && r.overPart(q) {
		r.cutAt(q)
		return nil
	}
	said, err := decide.Start(ctx, options(stepTime, stepAttempts), decideInput{Person: r.in.Case.Person, Request: *q, Used: r.used, Answered: r.answered}).Get(ctx)
	if err != nil {
		r.unknown = true
		return err
	}
	if said.Rule > 0 {
		r.used[said.Rule-1]++
	}
	r.t.Cost += said.Cost
	if q.Cause == agent.CodeLimitCost && r.renews(said) {
		if r.overPart(q) {
			r.cutAt(q)
			return nil
		}
		r.renewed++
	}
	switch said.Decision {
	case decisionFail:
		r.failed, r.status, r.reason = said.Text, agent.StatusSuspended, "the person was asked what must not be asked"
	case decisionNone, decisionIgnore:
		r.open = append(r.open, key)
	default:
		r.answered++
		refused, err := answer.Start(ctx, options(stepTime, stepAttempts), answerInput{Person: r.in.Case.Person, Request: *q, Answer: said}).Get(ctx)
		if err != nil {
			return err
		}
		if said.Refused = refused; refused != "" {
			r.open = append(r.open, key)
		}
	}
	if len(r.t.Answers) < maxAnswers {
		r.t.Answers = append(r.t.Answers, said)
	}
	return nil
}

// renews reports whether an answer lets a run continue that has reached a limit.
func (r *trying) renews(said eval.Answer) bool {
	stops := said.Text == "stop" || said.Rule > 0 && r.in.Case.Person.Rules[said.Rule-1].Choice == "stop"
	return said.Decision == "answer" && !stops
}

// overPart reports whether the run could use more than the trial's part of the budget if it
// continued. Each renewal allows the limit once more.
func (r *trying) overPart(q *agent.Request) bool {
	return q.Cause == agent.CodeLimitCost && r.in.Part > 0 && agent.USD(r.renewed+2)*r.limits().CostUSD > r.in.Part
}

// cutAt ends the trial at a limit that its part does not allow to renew.
func (r *trying) cutAt(q *agent.Request) {
	r.cut, r.status, r.reason = true, agent.StatusSuspended, string(q.Cause)
}

// end ends a run that has not ended, and learns what it has used.
func (r *trying) end(ctx workflow.Context) {
	if r.t.Session == "" {
		return
	}
	if !r.ended {
		was, err := finish.Start(ctx, options(finishTime, stepAttempts), finishInput{Session: r.t.Session, Reason: "the evaluation has seen enough"}).Get(ctx)
		switch {
		case err != nil && r.t.State == "":
			failed(&r.t, err)
		case r.late != "" && was.Status == agent.StatusSuspended:
			// It waited for something that did not come, which a grader may ask for.
			r.status, r.reason = was.Status, was.Reason
		case r.late != "":
			r.status, r.reason, r.failed = agent.StatusCancelled, r.late, r.late
		}
	}
	seen, err := gradeFacts.Start(ctx, options(stepTime, stepAttempts), gradeInput{
		Session: r.t.Session, Case: r.in.Case, N: r.in.N, Status: r.status, Reason: r.reason,
	}).Get(ctx)
	if err != nil {
		r.unknown = true
		if r.t.State == "" {
			failed(&r.t, err)
		}
		return
	}
	// Somebody else may have started a later run in the session.
	if seen.Run != "" && seen.Run != r.t.Run && r.t.State == "" {
		r.unknown = true
		failed(&r.t, agent.Errorf(agent.CodeDenied, "the session %s has the run %s, which this evaluation did not begin: start a new evaluation", r.t.Session, seen.Run))
	}
	seen.State, seen.Why, seen.Error = r.t.State, r.t.Why, r.t.Error
	seen.Answers, seen.Cost = r.t.Answers, r.t.Cost
	r.t = seen
}

// grade asks the graders outside, each in a step of its own, since some cost money.
func (r *trying) grade(ctx workflow.Context) {
	for i, g := range r.in.Case.Graders {
		if g.Pure() != nil {
			continue
		}
		v, err := gradeOutside.Start(ctx, options(outsideTime(&g), stepAttempts), outsideInput{
			gradeInput{Session: r.t.Session, Case: r.in.Case, N: r.in.N, Status: r.status, Reason: r.reason}, i,
		}).Get(ctx)
		r.unknown = r.unknown || err != nil
		if isCancelled(err) {
			failed(&r.t, err)
			return
		}
		if err != nil {
			v = grade.Verdict{Grader: g.Called(), Error: err}
		}
		r.t.Cost += v.Cost
		r.t.Verdicts = append(r.t.Verdicts, v)
	}
	r.t.State = eval.StatePassed
	if r.failed != "" {
		r.t.State, r.t.Why = eval.StateFailed, r.failed
	}
	for _, v := range r.t.Verdicts {
		switch {
		case v.Error != nil:
			r.t.State, r.t.Error, r.t.Why = eval.StateError, v.Error, v.Grader+": "+v.Error.Message
			return
		case !v.Pass && r.t.State == eval.StatePassed:
			r.t.State, r.t.Why = eval.StateFailed, v.Grader+": "+v.Reason
		}
	}
}

// sum adds what the run has cost to what the judges and the person have. A trial whose cost
// is not known counts as its whole part: otherwise the budget would not hold.
func (r *trying) sum() {
	r.t.Cost += r.t.RunCost
	if r.unknown {
		r.t.Cost = max(r.t.Cost, r.in.Part)
	}
}
