package evalrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	sdktest "go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
)

// theatre plays evaluations without runs.
type theatre struct {
	*sdktest.TestWorkflowEnvironment
	// follows says what a trial's run does next. Without it the run completes.
	follows func(ctx context.Context, in awaitInput) (awaited, error)
	verdict func(in outsideInput) (grade.Verdict, error)
	cost    agent.USD
	was     finished
	// unread makes the step fail that reads what a trial did.
	unread bool

	mu     sync.Mutex
	begun  []beginInput
	at     []time.Time
	ended  []string
	sent   []eval.Answer
	atOnce int
	most   int
}

func newTheatre(t *testing.T) *theatre {
	t.Helper()
	th := &theatre{TestWorkflowEnvironment: (&sdktest.WorkflowTestSuite{}).NewTestWorkflowEnvironment()}
	th.SetTestTimeout(30 * time.Second)
	th.RegisterWorkflowWithOptions(evaluate, workflow.RegisterOptions{Name: WorkflowType})
	th.RegisterWorkflowWithOptions(trial, workflow.RegisterOptions{Name: trialType})
	begin.Register(th, func(ctx context.Context, in beginInput) (begun, error) {
		th.mu.Lock()
		defer th.mu.Unlock()
		th.begun, th.at = append(th.begun, in), append(th.at, th.Now())
		th.atOnce++
		th.most = max(th.most, th.atOnce)
		return begun{"run-1"}, nil
	})
	await.Register(th, func(ctx context.Context, in awaitInput) (awaited, error) {
		if th.follows != nil {
			return th.follows(ctx, in)
		}
		return awaited{Status: agent.StatusCompleted, Reason: "done"}, nil
	})
	s := &steps{&Options{}}
	decide.Register(th, s.decide)
	answer.Register(th, func(_ context.Context, in answerInput) (string, error) {
		th.mu.Lock()
		defer th.mu.Unlock()
		th.sent = append(th.sent, in.Answer)
		return "", nil
	})
	finish.Register(th, func(_ context.Context, in finishInput) (finished, error) {
		th.mu.Lock()
		defer th.mu.Unlock()
		th.ended = append(th.ended, in.Session)
		return th.was, nil
	})
	gradeFacts.Register(th, func(_ context.Context, in gradeInput) (eval.Trial, error) {
		th.mu.Lock()
		defer th.mu.Unlock()
		th.atOnce--
		if th.unread {
			return eval.Trial{}, agent.Errorf(agent.CodeChunkMissing, "the store has no end of the run")
		}
		f := &grade.Facts{Status: in.Status, Text: "yes"}
		r := eval.Trial{Counts: eval.Counts{Case: in.Case.Name, N: in.N}, Session: in.Session, Status: in.Status, RunCost: th.cost}
		for i := range in.Case.Graders {
			if g := &in.Case.Graders[i]; g.Pure() != nil {
				r.Verdicts = append(r.Verdicts, g.Verdict(f))
			}
		}
		return r, nil
	})
	gradeOutside.Register(th, func(_ context.Context, in outsideInput) (grade.Verdict, error) { return th.verdict(in) })
	return th
}

// suiteOf makes a suite of one case that passes.
func suiteOf(trials int) *eval.Suite {
	return &eval.Suite{Name: "s", Agent: "a", Trials: trials, Cases: []eval.Case{{Name: "c", Input: []byte(`"do"`), Graders: []grade.Spec{{Exact: "yes"}}}}}
}

// A step whose process was killed is made again soon, whatever time the step itself has: a
// judge has 10 minutes.
func TestEveryStepHasHeartbeats(t *testing.T) {
	th := newTheatre(t)
	steps := map[string]bool{}
	th.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		steps[info.ActivityType.Name] = true
		require.Equal(t, heartbeatTime, info.HeartbeatTimeout, info.ActivityType.Name)
	})
	asked := false
	th.follows = func(context.Context, awaitInput) (awaited, error) {
		if !asked {
			asked = true
			return awaited{Request: &agent.Request{ID: "q-1", Type: agent.RequestQuestion, Session: "s-1.c.1", Text: "Go on?"}}, nil
		}
		return awaited{Status: agent.StatusSuspended, Reason: "question"}, nil
	}
	th.verdict = func(outsideInput) (grade.Verdict, error) { return grade.Verdict{Pass: true}, nil }
	th.tried(t, eval.Case{
		Name: "c", Input: []byte(`"do"`), Graders: []grade.Spec{{Judge: &grade.Judge{Model: "m", Rubric: "r"}}},
		Person: &eval.Person{Rules: []eval.PersonRule{{Text: "yes"}}},
	})
	require.Len(t, steps, 7)
}

// A step that only waits ends when its worker stops, and is tried again: a worker that has
// stopped reports nothing.
func TestAStepThatWaitsEndsWithItsWorker(t *testing.T) {
	stopped := make(chan struct{})
	env := (&sdktest.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.SetWorkerStopChannel(stopped)
	await.Register(env, waiting(func(ctx context.Context, _ awaitInput) (awaited, error) {
		close(stopped)
		<-ctx.Done()
		return awaited{}, ctx.Err()
	}))
	_, err := env.ExecuteActivity(await.Name, awaitInput{Session: "s"})
	var e *temporal.ApplicationError
	require.ErrorAs(t, err, &e)
	require.False(t, e.NonRetryable(), err)
}

func (th *theatre) play(t *testing.T, s *eval.Suite) (p Progress) {
	t.Helper()
	th.ExecuteWorkflow(WorkflowType, input{Info: eval.Info{ID: "s-1"}, Definition: s})
	require.True(t, th.IsWorkflowCompleted())
	require.NoError(t, th.GetWorkflowError())
	require.NoError(t, th.GetWorkflowResult(&p))
	require.True(t, p.Ended)
	require.Zero(t, p.Running)
	return p
}

// tried plays one trial and returns its record.
func (th *theatre) tried(t *testing.T, c eval.Case) (r eval.Trial) {
	t.Helper()
	s := &eval.Suite{Name: "s", Agent: "a", Timeout: agent.Duration(time.Minute), Cases: []eval.Case{c}}
	th.ExecuteWorkflow(trialType, trialInput{ID: "s-1", Case: s.Complete(0), N: 1})
	require.NoError(t, th.GetWorkflowError())
	require.NoError(t, th.GetWorkflowResult(&r))
	return r
}

func TestThePlanTakesTurns(t *testing.T) {
	th := newTheatre(t)
	s := suiteOf(3)
	s.Cases = append(s.Cases, eval.Case{Name: "d", Trials: 1, Input: s.Cases[0].Input, Graders: s.Cases[0].Graders})
	s.AtOnce = 1
	require.Len(t, th.play(t, s).Done, 4)
	var order []string
	for _, b := range th.begun {
		order = append(order, fmt.Sprint(b.Case.Name, b.N))
	}
	require.Equal(t, []string{"c1", "d1", "c2", "c3"}, order)
	require.Equal(t, 1, th.most)
}

func TestTheRate(t *testing.T) {
	th := newTheatre(t)
	s := suiteOf(4)
	s.PerMinute, s.AtOnce = 2, 4
	p := th.play(t, s)
	require.Len(t, p.Done, 4)
	for i := range 3 {
		require.GreaterOrEqual(t, th.at[i+1].Sub(th.at[i]), 30*time.Second)
	}
}

// Each trial gets its part of what is left, so that all together keep the budget.
func TestTheBudgetOfMoney(t *testing.T) {
	th := newTheatre(t)
	th.cost = 30
	s := suiteOf(20)
	s.AtOnce, s.Budget.CostUSD = 2, 100
	p := th.play(t, s)
	require.Equal(t, eval.StopCost, p.Stopped)
	require.Equal(t, 20, len(p.Done)+p.Left)
	require.Equal(t, agent.USD(30*len(p.Done)), p.Spent)
	// Those that ran together last may have cost more than their parts. How many ran depends
	// on which of two ended first.
	require.GreaterOrEqual(t, p.Spent, agent.USD(100))
	require.Less(t, p.Spent, agent.USD(100+2*30))
	var parts []agent.USD
	for _, b := range th.begun {
		parts = append(parts, b.Limits.CostUSD)
	}
	slices.Sort(parts)
	require.Equal(t, []agent.USD{50, 50}, parts[len(parts)-2:], "the first two")
}

// A trial that its part of the budget ended counts neither way.
func TestATrialThatTheBudgetCuts(t *testing.T) {
	th := newTheatre(t)
	th.follows = func(context.Context, awaitInput) (awaited, error) {
		return awaited{Status: agent.StatusFailed, Reason: string(agent.CodeLimitCost)}, nil
	}
	s := suiteOf(1)
	s.Budget.CostUSD = 100
	require.Equal(t, eval.StateLeftOut, th.play(t, s).Done[0].State)
	// Without a budget the limit is the agent's own, and its failure counts.
	th = newTheatre(t)
	th.follows = func(context.Context, awaitInput) (awaited, error) {
		return awaited{Status: agent.StatusFailed, Reason: string(agent.CodeLimitCost)}, nil
	}
	s.Budget.CostUSD = 0
	s.Cases[0].Graders = []grade.Spec{{Status: "completed"}}
	require.Equal(t, eval.StateFailed, th.play(t, s).Done[0].State)
}

// A trial whose cost is not known counts as its whole part: the budget holds.
func TestACostThatIsUnknown(t *testing.T) {
	th := newTheatre(t)
	th.unread = true
	s := suiteOf(20)
	s.AtOnce, s.Budget.CostUSD = 2, 100
	p := th.play(t, s)
	require.Equal(t, eval.StopCost, p.Stopped)
	require.Equal(t, agent.USD(100), p.Spent)
	require.Len(t, p.Done, 2)
	require.Equal(t, []eval.State{eval.StateError, eval.StateError}, []eval.State{p.Done[0].State, p.Done[1].State})

	// Also if the trial's workflow has no record.
	th = newTheatre(t)
	th.OnWorkflow(trialType, mock.Anything, mock.Anything).Return(eval.Trial{}, errors.New("terminated"))
	p = th.play(t, s)
	require.Equal(t, agent.USD(100), p.Spent)
	require.Len(t, p.Done, 2)
}

// No rule of a person lets a run continue beyond the trial's part of the budget.
func TestThePersonKeepsTheBudget(t *testing.T) {
	asks := func(_ context.Context, in awaitInput) (awaited, error) {
		if len(in.Seen) == 3 {
			return awaited{Status: agent.StatusCompleted, Reason: "done"}, nil
		}
		return awaited{Request: &agent.Request{ID: fmt.Sprint("q-", len(in.Seen)), Session: "s-1.c.1", Type: agent.RequestLimit, Cause: agent.CodeLimitCost, Choices: []string{"continue", "stop"}}}, nil
	}
	for _, tt := range []struct {
		budget, limit agent.USD
		sent          int
		state         eval.State
	}{
		{100, 0, 0, eval.StateLeftOut},
		{100, 30, 2, eval.StateLeftOut}, // 30, and 30 twice more
		{100, 20, 3, eval.StatePassed},
		{0, 30, 3, eval.StatePassed},
	} {
		th := newTheatre(t)
		th.follows = asks
		s := suiteOf(1)
		s.Budget.CostUSD, s.Limits.CostUSD = tt.budget, tt.limit
		s.Person = &eval.Person{Rules: []eval.PersonRule{{Choice: "continue"}}}
		p := th.play(t, s)
		require.Equal(t, tt.state, p.Done[0].State, tt)
		require.Len(t, th.sent, tt.sent, tt)
	}
}

// At the end of its time, and when it is cancelled, an evaluation ends the runs of its
// trials and begins no more.
func TestAnEvaluationThatIsStopped(t *testing.T) {
	forever := func(ctx context.Context, _ awaitInput) (awaited, error) {
		<-ctx.Done()
		return awaited{}, soon(ctx, ctx.Err())
	}
	for _, tt := range []struct {
		stop eval.Stop
		do   func(*theatre, *eval.Suite)
	}{
		{eval.StopTime, func(_ *theatre, s *eval.Suite) { s.Budget.Time = agent.Duration(time.Second) }},
		{eval.StopCancelled, func(th *theatre, _ *eval.Suite) { th.RegisterDelayedCallback(th.CancelWorkflow, time.Second) }},
	} {
		th := newTheatre(t)
		th.follows = forever
		s := suiteOf(5)
		s.AtOnce = 2
		tt.do(th, s)
		p := th.play(t, s)
		require.Equal(t, tt.stop, p.Stopped)
		require.Len(t, p.Done, 2)
		require.Equal(t, 3, p.Left)
		for _, c := range p.Done {
			require.Equal(t, eval.StateLeftOut, c.State)
		}
		require.ElementsMatch(t, []string{"s-1.c.1", "s-1.c.2"}, th.ended)
	}
}

// The person's rules count over the whole trial, and what it leaves open suspends the trial.
func TestThePersonOfATrial(t *testing.T) {
	th := newTheatre(t)
	ask := func(id string) awaited {
		return awaited{Request: &agent.Request{ID: id, Type: agent.RequestApproval, Session: "s-1.c.1", Text: "Run pay?", Call: &agent.RequestCall{Tool: "pay"}}}
	}
	th.follows = func(_ context.Context, in awaitInput) (awaited, error) {
		if n := len(in.Seen); n < 3 {
			return ask(fmt.Sprintf("q-%d", n+1)), nil
		}
		require.Equal(t, []string{"s-1.c.1 q-3"}, in.Open)
		return awaited{Status: agent.StatusSuspended, Reason: "approval"}, nil
	}
	r := th.tried(t, eval.Case{
		Name: "c", Input: []byte(`"do"`), Graders: []grade.Spec{{Status: "suspended"}},
		Person: &eval.Person{Rules: []eval.PersonRule{{Tool: "pay", Times: 1, Approve: true}, {Times: 1, Reject: "twice"}}},
	})
	require.Equal(t, eval.StatePassed, r.State, r.Why)
	require.Equal(t, []string{"approve 1", "reject 2", "none 0"}, []string{fmt.Sprint(r.Answers[0].Decision, " ", r.Answers[0].Rule), fmt.Sprint(r.Answers[1].Decision, " ", r.Answers[1].Rule), fmt.Sprint(r.Answers[2].Decision, " ", r.Answers[2].Rule)})
	require.Len(t, th.sent, 2)
	require.Equal(t, []string{"s-1.c.1"}, th.ended, "it waits for nobody any more")

	th = newTheatre(t)
	th.follows = func(context.Context, awaitInput) (awaited, error) { return ask("q-1"), nil }
	r = th.tried(t, eval.Case{Name: "c", Input: []byte(`"do"`), Graders: []grade.Spec{{Exact: "yes"}}, Person: &eval.Person{Rules: []eval.PersonRule{{Fail: "never ask to pay"}}}})
	require.Equal(t, eval.StateFailed, r.State)
	require.Contains(t, r.Why, "never ask to pay")
}

func TestATrialThatTakesTooLong(t *testing.T) {
	// The clock of the test environment does not jump while a step is made.
	forever := func(ctx context.Context, _ awaitInput) (awaited, error) {
		<-ctx.Done()
		return awaited{}, soon(ctx, ctx.Err())
	}
	soonOver := agent.Duration(200 * time.Millisecond)
	th := newTheatre(t)
	th.follows = forever
	r := th.tried(t, eval.Case{Name: "c", Timeout: soonOver, Input: []byte(`"do"`), Graders: []grade.Spec{{Exact: "yes"}}})
	require.Equal(t, []any{eval.StateFailed, "the trial took longer than 200ms"}, []any{r.State, r.Why})
	require.Len(t, th.ended, 1)
	// One that is parked then is suspended, which a grader may ask for.
	th = newTheatre(t)
	th.follows, th.was = forever, finished{agent.StatusSuspended, "tickets"}
	r = th.tried(t, eval.Case{Name: "c", Timeout: soonOver, Input: []byte(`"do"`), Graders: []grade.Spec{{Status: "suspended"}}})
	require.Equal(t, eval.StatePassed, r.State, r.Why)
}

// A judge's cost counts, and a grader that fails makes the trial neither good nor bad.
func TestGradersOutside(t *testing.T) {
	c := eval.Case{Name: "c", Input: []byte(`"do"`), Graders: []grade.Spec{{Exact: "yes"}, {Judge: &grade.Judge{Model: "m", Rubric: "r"}}}}
	th := newTheatre(t)
	th.cost = 7
	th.verdict = func(in outsideInput) (grade.Verdict, error) {
		require.Equal(t, 1, in.Grader)
		return grade.Verdict{Grader: "judge", Pass: false, Reason: "rude", Cost: 5}, nil
	}
	r := th.tried(t, c)
	require.Equal(t, []any{eval.StateFailed, "judge: rude", agent.USD(12), agent.USD(7)}, []any{r.State, r.Why, r.Cost, r.RunCost})
	th = newTheatre(t)
	th.verdict = func(outsideInput) (grade.Verdict, error) {
		return grade.Verdict{}, agent.Errorf(agent.CodeProviderAuth, "no key")
	}
	r = th.tried(t, c)
	require.Equal(t, eval.StateError, r.State)
	require.Equal(t, agent.CodeProviderAuth, r.Error.Code)
}
