package testsuite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	sdktest "go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// testEnvRun is a run in Temporal's test environment. The environment skips time as soon
// as nothing is in flight. So while the run is suspended, a callback of ours keeps the
// environment busy and waits for the test.
type testEnvRun struct {
	of      *testEnvBackend
	session string
	run     string // its id

	todo chan envTask
	over chan struct{} // closed when the run has ended, or the test has
	// unanswered counts verbs without an answer yet. The environment must answer them
	// before it waits for the test. Only its own goroutine uses this field.
	unanswered int

	mu       sync.Mutex
	changed  *sync.Cond
	env      *sdktest.TestWorkflowEnvironment // of the current execution
	reached  bool                             // it has completed its first task, so it can be reached
	resumes  int                              // how often the run was made to continue; an older look is outdated then
	resting  bool                             // the environment waits for the test
	until    time.Time                        // time passes until then; zero while it stands still
	outcome  *agent.Outcome
	err      error // the error that fails the test
	reported bool  // the test has got the error
	clock    time.Time
}

// envTask is done within the environment. If goes is set, the run continues after it.
type envTask struct {
	do   func()
	goes bool
	done chan struct{}
}

// instant is the shortest time. A callback after it runs when only model and tool calls
// are in flight, because during those the environment uses real time.
const instant = time.Nanosecond

// idleFor is how long the environment tolerates that nothing happens, as when a test
// blocks a tool. Its default of 3 s is short on a busy machine.
const idleFor = 5 * time.Minute

func newTestEnvRun(r *testEnvBackend, session, run string, begin time.Time) *testEnvRun {
	p := &testEnvRun{of: r, session: session, run: run, todo: make(chan envTask, 64), over: make(chan struct{}), clock: begin}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// perform executes the run to its end, over all its executions.
func (p *testEnvRun) perform(args ...*commonpb.Payload) {
	defer close(p.over)
	defer func() {
		// The environment panics when its time is up; that must fail the test and not end it.
		gaveUp := recover()
		p.set(func() {
			if gaveUp != nil {
				p.fail(fmt.Errorf("session %s: Temporal's test environment gave up: %v", p.session, gaveUp))
			}
			p.resting = false
		})
	}()
	for execution := 0; ; execution++ {
		env := p.prepare(execution)
		// The workflow has three arguments at most; a nil is a missing one.
		values := make([]any, 3)
		for i, a := range args {
			values[i] = converter.NewRawValue(a)
		}
		env.ExecuteWorkflow(signals.WorkflowType, values...)
		var next *workflow.ContinueAsNewError
		if err := env.GetWorkflowError(); !errors.As(err, &next) {
			out, err := outcomeOf(env)
			p.set(func() {
				if now := env.Now(); now.After(p.until) {
					p.clock = now
				} else { // it ended while time was skipped
					p.clock = p.until
				}
				p.outcome = out
				p.fail(err)
			})
			return
		}
		// The next execution gets what continue-as-new passed on.
		args = next.Input.GetPayloads()
	}
}

// prepare returns an environment for one execution.
func (p *testEnvRun) prepare(execution int) *sdktest.TestWorkflowEnvironment {
	var suite sdktest.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	// Ours first, so it sees the run before the worker's own interceptors.
	own := append([]interceptor.WorkerInterceptor{&runInterceptor{play: p}}, p.of.parts.Register(env)...)
	env.SetWorkerOptions(sdkworker.Options{Interceptors: own, DeadlockDetectionTimeout: idleFor}) // a busy machine is no deadlock
	for kind, do := range p.of.activities {
		env.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: kind})
	}
	env.SetStartWorkflowOptions(startOptions(p.session))
	env.SetTestTimeout(idleFor)
	if execution > 0 {
		env.SetContinuedExecutionRunID("default-test-run-id") // the id of every execution in the SDK's environment
	}
	p.set(func() {
		if p.env != nil {
			p.clock = p.env.Now()
		}
		p.env, p.reached = env, false
	})
	// Time continues from the last execution, or after a skip.
	env.SetStartTime(p.clock)
	if d := p.until.Sub(p.clock); d > 0 {
		env.RegisterDelayedCallback(p.arrive, d)
	}
	p.lookSoon(env)
	return env
}

// lookSoon calls look when nothing is in flight.
func (p *testEnvRun) lookSoon(env *sdktest.TestWorkflowEnvironment) {
	p.mu.Lock()
	resumes := p.resumes
	p.mu.Unlock()
	env.RegisterDelayedCallback(func() {
		if resumes == p.resumes { // only this goroutine writes it
			p.look()
		}
	}, instant)
}

// outcomeOf returns how the last execution ended.
func outcomeOf(env *sdktest.TestWorkflowEnvironment) (*agent.Outcome, error) {
	var o agent.Outcome
	err := env.GetWorkflowResult(&o)
	var app *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	switch {
	case err == nil:
		return &o, nil
	// A failed run has its outcome in the error's details.
	case errors.As(err, &app) && app.HasDetails():
		return &o, app.Details(&o)
	case errors.As(err, &cancelled) && cancelled.HasDetails():
		return &o, cancelled.Details(&o)
	}
	return nil, err
}

// set changes fields that others wait for.
func (p *testEnvRun) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// fail keeps the first error; nil is no error. The lock is held.
func (p *testEnvRun) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// look is called within the environment. If the run is suspended, it waits for the test.
func (p *testEnvRun) look() {
	if _, err := ask(p.env, signals.Status.Name); err != nil { // it has not started
		p.lookSoon(p.env)
		return
	}
	p.set(func() { p.reached = true })
	p.drain() // requests from before the run could be reached
	for {
		st, err := ask(p.env, signals.Status.Name)
		if err != nil || p.unanswered > 0 || st.Status != agent.StatusSuspended || p.react(st) || p.env.Now().Before(p.until) {
			return
		}
		p.set(func() { p.resting = true })
		// This blocks the environment, and so stops its clock.
		if p.carryOut(<-p.todo) {
			return
		}
	}
}

// carryOut does one task, and reports whether the run continues after it.
func (p *testEnvRun) carryOut(e envTask) bool {
	// Set before the task: what it triggers may look again at once.
	p.set(func() {
		if e.goes {
			p.resting = false
			p.resumes++
		}
	})
	e.do()
	close(e.done)
	return e.goes
}

// react lets the person answer the run's requests, and reports whether it answered any.
func (p *testEnvRun) react(st agent.RunStatus) bool {
	if st.Suspension == nil {
		return false
	}
	list, err := p.of.person.reactions(st.Suspension.Requests)
	if err != nil {
		p.set(func() { p.fail(err) })
		// The run ends now, because nobody would answer it.
		p.env.CancelWorkflow()
		return true
	}
	acted := false
	for _, s := range list {
		if s.Command == nil {
			continue
		}
		acted = true
		p.update(s.Command, func(_ agent.Ack, err error) {
			if refused := personRefused(err); refused != nil {
				p.set(func() { p.fail(refused) })
				p.env.CancelWorkflow()
			}
		})
	}
	if acted {
		p.set(func() { p.resumes++ })
	}
	return acted
}

// drain carries out the test's tasks while something is in flight.
func (p *testEnvRun) drain() {
	for {
		select {
		case e := <-p.todo:
			p.carryOut(e)
		default: // it was done while the run was suspended
			return
		}
	}
}

// arrive ends a skip of time.
func (p *testEnvRun) arrive() {
	p.set(func() { p.until = time.Time{} })
	p.look()
}

// do runs a function within the environment as soon as possible. It reports whether it
// ran: it does not if the run has ended.
func (p *testEnvRun) do(ctx context.Context, goes bool, do func()) (bool, error) {
	e := envTask{do: do, goes: goes, done: make(chan struct{})}
	select {
	case <-p.over:
		return false, nil
	case p.todo <- e:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	p.mu.Lock()
	env, reached := p.env, p.reached
	p.mu.Unlock()
	// Before the first look there is nothing to interrupt: look drains the queue itself.
	if reached {
		env.RegisterDelayedCallback(p.drain, 0)
	}
	select {
	case <-e.done:
		return true, nil
	case <-p.over:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// settle waits until the run is suspended or has ended.
func (p *testEnvRun) settle(ctx context.Context) error {
	// Wakes the wait below, which can't select on a context.
	defer context.AfterFunc(ctx, func() { p.set(func() {}) })()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.resting && p.err == nil && p.outcome == nil && ctx.Err() == nil {
		p.changed.Wait()
	}
	if p.err == nil && ctx.Err() != nil {
		return fmt.Errorf("session %s is neither suspended nor ended: %w", p.session, ctx.Err())
	}
	p.reported = true
	return p.err
}

// result returns how the run ended; nil if it has not.
func (p *testEnvRun) result() *agent.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.outcome
}

func (p *testEnvRun) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.outcome != nil || p.err != nil
}

// now returns the run's time, while it is suspended or after its end.
func (p *testEnvRun) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resting {
		// Safe here: the environment's goroutine waits for the test.
		return p.env.Now()
	}
	return p.clock
}

// status asks the run for its status, at any time.
func (p *testEnvRun) status(ctx context.Context) (st agent.RunStatus, err error) {
	done, stop := p.do(ctx, false, func() { st, err = ask(p.env, signals.Status.Name) })
	if stop != nil {
		return st, stop
	}
	if !done { // it has ended: nothing is in flight in its environment
		// After its end only this goroutine uses the environment.
		<-p.over
		return ask(p.env, signals.Status.Name)
	}
	return st, err
}

func ask(env *sdktest.TestWorkflowEnvironment, query string) (st agent.RunStatus, err error) {
	v, err := env.QueryWorkflow(query)
	if err != nil {
		return st, fmt.Errorf("asking for the status: %w", err)
	}
	return st, v.Get(&st)
}

// abandon cancels a run that the test has not brought to its end, and waits for its last
// activities. They would otherwise write into a folder that is being removed.
func (p *testEnvRun) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), abandonTimeout)
	defer cancel()
	// An error means that the time is up; the report below says more.
	if done, err := p.do(ctx, true, func() { p.env.CancelWorkflow() }); done && err == nil {
		select {
		case <-p.over:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil && !p.reported {
		p.of.t.Errorf("session %s: %v", p.session, p.err)
	}
}

// abandonTimeout is how long an Env waits for the last activities of a run.
const abandonTimeout = 10 * time.Second
