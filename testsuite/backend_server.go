package testsuite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/worker"
)

// serverBackend executes runs on a real server.
type serverBackend struct {
	temporal  temporal.Client
	namespace string
	client    *client.Client
	person    *personState
	sessions  []string // the sessions that were started here
	patience  time.Duration
	workers   workers
}

func newServerBackend(t testing.TB, own *worker.Options, o *Options) *serverBackend {
	t.Helper()
	p := &serverBackend{
		temporal: o.Server, namespace: o.namespace(), patience: patient, person: o.Person.newState(),
		client: client.New(o.Server, &client.Options{TaskQueue: own.TaskQueue, Store: own.Store}),
	}
	if o.Crash == nil {
		t.Cleanup(p.startWorker(t, o.Server, own).Stop)
	} else {
		p.patience = 3 * patient // the server repeats what died with the worker after up to a minute
		p.startMortalWorkers(t, own, o)
		t.Cleanup(func() {
			if o.Crash.Step > 0 && !o.Crash.Happened() && !o.Crash.tooShort() && !t.Failed() {
				t.Errorf("the crash %s step %d did not happen: the story has %d steps", o.Crash.When, o.Crash.Step, len(o.Crash.Steps()))
			}
		})
	}
	t.Cleanup(func() { closeAll(t, o.Server, own) })
	return p
}

// startWorker starts a worker.
func (p *serverBackend) startWorker(t testing.TB, c temporal.Client, own *worker.Options) *worker.Worker {
	t.Helper()
	w, err := worker.New(c, own)
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	p.workers.add(w)
	return w
}

// startMortalWorkers starts a worker that crashes, and another one after the crash.
func (p *serverBackend) startMortalWorkers(t testing.TB, own *worker.Options, o *Options) {
	t.Helper()
	m, c := dialKillable(t, o)
	doomed := *own
	doomed.Temporal = func(l worker.Lane, o *sdkworker.Options) {
		if own.Temporal != nil {
			own.Temporal(l, o)
		}
		// A killed process does not wait for its calls either.
		o.WorkerStopTimeout = time.Millisecond
	}
	first := p.startWorker(t, c, &doomed)
	over, stop := context.WithCancel(context.Background())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-m.alive.Done():
		case <-over.Done():
			first.Stop()
			return
		}
		defer first.Stop()
		next, err := worker.New(o.Server, own)
		if err == nil {
			err = next.Start(over)
		}
		if err != nil {
			t.Errorf("starting a worker after the crash: %v", err)
			return
		}
		p.workers.add(next)
		<-over.Done()
		next.Stop()
	}()
	t.Cleanup(func() {
		stop()
		<-gone
	})
}

func (p *serverBackend) start(ctx context.Context, _, name, text string, o *client.StartOptions) error {
	_, err := p.client.Start(ctx, name, text, o)
	if err == nil {
		p.sessions = append(p.sessions, o.Session)
	}
	return err
}

// patient is how long an Env waits for a run to be suspended or to end.
const patient = 2 * time.Minute

// wait waits until the run is suspended or has ended, while the person answers it and the
// runs below it. A run that waits for children counts as suspended once all of them are.
func (p *serverBackend) wait(ctx context.Context, session string) (*agent.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		o, resting, err := p.look(ctx, session)
		if resting || err != nil && ctx.Err() == nil {
			return o, err
		}
		select {
		case <-ctx.Done():
			return nil, p.stuck(session, cmp.Or(err, ctx.Err()))
		case <-look.C:
		}
	}
}

// look waits until the run itself is suspended or has ended, and reports whether its
// whole tree is.
func (p *serverBackend) look(ctx context.Context, session string) (*agent.Outcome, bool, error) {
	run, err := p.get(ctx, session)
	if err != nil {
		return nil, false, err
	}
	o, err := run.Wait(ctx)
	if err != nil || o.Status != agent.StatusSuspended {
		return o, err == nil, err
	}
	resting, err := p.rests(ctx, run)
	return o, resting, err
}

// stuck describes a run that is neither suspended nor has ended.
func (p *serverBackend) stuck(session string, err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	st, asked := p.status(ctx, session)
	if asked != nil {
		return fmt.Errorf("session %s is neither suspended nor ended (%w), and does not answer: %w", session, err, asked)
	}
	return fmt.Errorf("session %s is neither suspended nor ended (%w); it is %s and does %s", session, err, st.Status, text(st.InFlight))
}

// rests reports whether all live runs of a tree are suspended, once the person has
// answered their requests. A run does not count while it still has a hold that was
// removed from an ancestor.
func (p *serverBackend) rests(ctx context.Context, top *client.Run) (bool, error) {
	runs, err := p.tree(ctx, top)
	if err != nil {
		return false, err
	}
	resting, held := len(runs) > 0, map[string]bool{} // own holds by session, ancestors first
	for _, run := range runs {
		s, err := run.Suspension(ctx)
		if err != nil || s == nil {
			resting = false // it continues, has just ended, or has no worker
			continue
		}
		held[run.Session] = slices.ContainsFunc(s.Holds, func(h agent.Hold) bool { return h.From == agent.HoldOwn })
		for _, h := range s.Holds {
			still, known := held[h.Session]
			resting = resting && (still || !known)
		}
		if s.Kind == agent.SuspensionAwaitingChildren && !slices.ContainsFunc(runs, func(r *client.Run) bool { return strings.HasPrefix(r.Session, run.Session+"/") }) {
			resting = false // the listing is behind, or the run has not learned of their ends
		}
		acted, err := p.react(ctx, s.Requests)
		if err != nil {
			return false, err
		}
		resting = resting && !acted
	}
	return resting, nil
}

// react lets the person answer a run's requests, and reports whether it answered any.
func (p *serverBackend) react(ctx context.Context, open []agent.Request) (acted bool, err error) {
	list, err := p.person.reactions(open)
	for _, decision := range list {
		if decision.Command == nil {
			continue
		}
		acted = true
		_, err := p.send(ctx, decision.Request.Session, decision.Command)
		if err := personRefused(err); err != nil {
			return false, err
		}
	}
	return acted, err
}

// tree returns a run and the live runs below it.
func (p *serverBackend) tree(ctx context.Context, top *client.Run) (runs []*client.Run, err error) {
	nodes, err := top.Tree(ctx)
	for _, n := range nodes {
		if n.Status.Ended() {
			continue
		}
		run, err := p.get(ctx, n.Session)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, err
}

func (p *serverBackend) status(ctx context.Context, session string) (st agent.RunStatus, err error) {
	run, err := p.get(ctx, session)
	if err != nil {
		return st, err
	}
	return withWorker(ctx, p.patience, func(ctx context.Context) (agent.RunStatus, error) { return run.Status(ctx) })
}

func (p *serverBackend) send(ctx context.Context, session string, c agent.Command) (agent.Ack, error) {
	return withWorker(ctx, p.patience, func(ctx context.Context) (agent.Ack, error) {
		return signals.Update(ctx, p.temporal, session, c)
	})
}

// get returns a session's last run.
func (p *serverBackend) get(ctx context.Context, session string) (*client.Run, error) {
	return durable.Thrice(ctx, func() (*client.Run, error) { return p.client.Get(ctx, session) })
}

// withWorker repeats what the server refuses because no worker could continue the run just
// then, as it does for a while after two workflow tasks in a row have failed or timed out.
func withWorker[A any](ctx context.Context, patience time.Duration, ask func(context.Context) (A, error)) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		answer, err := ask(ctx)
		if !errors.Is(err, agent.CodeNoWorker) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, err
		case <-look.C:
		}
	}
}
