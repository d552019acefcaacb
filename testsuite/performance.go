package testsuite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/worker"
)

// performance plays runs on a real server.
type performance struct {
	temporal  temporal.Client
	namespace string
	client    *client.Client
	person    *visit
	sessions  []string // that were begun here
}

func newPerformance(t testing.TB, own *worker.Options, o *Options) *performance {
	t.Helper()
	p := &performance{
		temporal: o.Server, namespace: o.namespace(), person: o.Person.on(),
		client: client.New(o.Server, &client.Options{TaskQueue: own.TaskQueue, Store: own.Store}),
	}
	if o.Crash == nil {
		t.Cleanup(begin(t, o.Server, own).Stop)
	} else {
		p.mortals(t, own, o)
	}
	t.Cleanup(func() { replayAll(t, o.Server, own) })
	return p
}

// begin starts a worker.
func begin(t testing.TB, c temporal.Client, own *worker.Options) *worker.Worker {
	t.Helper()
	w, err := worker.New(c, own)
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	return w
}

// mortals starts a worker that dies at its time, and another one then.
func (p *performance) mortals(t testing.TB, own *worker.Options, o *Options) {
	t.Helper()
	m, c := dialMortal(t, o)
	doomed := *own
	doomed.StopTimeout = time.Millisecond
	first := begin(t, c, &doomed)
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
		next, err := worker.New(o.Server, own)
		if err == nil {
			err = next.Start(over)
		}
		if err != nil {
			t.Errorf("starting a worker after the crash: %v", err)
			return
		}
		<-over.Done()
		next.Stop()
		first.Stop()
	}()
	t.Cleanup(func() {
		stop()
		<-gone
	})
}

func (p *performance) start(ctx context.Context, _, name, text string, o *client.StartOptions) error {
	_, err := p.client.Start(ctx, name, text, o)
	if err == nil {
		p.sessions = append(p.sessions, o.Session)
	}
	return err
}

// wait waits until the run rests or ends, and lets the person answer it and those
// below it. A run that waits for agents below it rests when all of them do.
func (p *performance) wait(ctx context.Context, session string) (*agent.Outcome, error) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		run, err := p.client.Get(ctx, session)
		if err != nil {
			return nil, err
		}
		o, err := run.Wait(ctx)
		if err != nil || o.Status != agent.Suspended {
			return o, err
		}
		resting, err := p.rests(ctx, run)
		if err != nil || resting {
			return o, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for session %s: %w", session, ctx.Err())
		case <-look.C:
		}
	}
}

// rests tells whether all live runs of a tree rest, once the person has answered what
// they ask. One that is still held by a hold that was lifted above it does not.
func (p *performance) rests(ctx context.Context, top *client.Run) (bool, error) {
	runs, err := p.tree(ctx, top)
	if err != nil {
		return false, err
	}
	resting, held := true, map[string]bool{} // by sessions, those above first
	for _, run := range runs {
		s, err := run.Suspension(ctx)
		if err != nil || s == nil {
			resting = false // it goes on, or has just ended
			continue
		}
		held[run.Session] = slices.ContainsFunc(s.Held, func(h agent.Hold) bool { return h.From == agent.HoldOwn })
		for _, h := range s.Held {
			still, known := held[h.Session]
			resting = resting && (still || !known)
		}
		acted, err := p.react(ctx, s.Requests)
		if err != nil {
			return false, err
		}
		resting = resting && !acted
	}
	return resting, nil
}

// react lets the person answer what a run asks; it tells whether he did.
func (p *performance) react(ctx context.Context, open []agent.Request) (acted bool, err error) {
	list, err := p.person.reactions(open)
	for _, said := range list {
		if said.Command == nil {
			continue
		}
		acted = true
		if _, err := signals.Say(ctx, p.temporal, said.Request.Session, said.Command); err != nil {
			return false, fmt.Errorf("what the person said was refused: %w", err)
		}
	}
	return acted, err
}

// tree lists a run and the live ones below it.
func (p *performance) tree(ctx context.Context, top *client.Run) (runs []*client.Run, err error) {
	nodes, err := top.Tree(ctx)
	for _, n := range nodes {
		if n.Status.Ended() {
			continue
		}
		run, err := p.client.Get(ctx, n.Session)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, err
}

func (p *performance) status(ctx context.Context, session string) (agent.RunStatus, error) {
	run, err := p.client.Get(ctx, session)
	if err != nil {
		return agent.RunStatus{}, err
	}
	return run.Status(ctx)
}

func (p *performance) say(ctx context.Context, session string, c agent.Command) (agent.Ack, error) {
	return signals.Say(ctx, p.temporal, session, c)
}

// skip lets time go by, from one thing that falls due to the next, so that the
// person can answer what comes of it.
func (p *performance) skip(ctx context.Context, d time.Duration) error {
	for d > 0 {
		runs, err := p.live(ctx)
		if err != nil {
			return err
		}
		step, skipping := d, []*client.Run{}
		for _, run := range runs {
			c, err := p.clock(ctx, run)
			switch {
			case err != nil:
				return err
			case c.waits: // it has no time of its own
			case c.due() > 0:
				step = min(step, c.due())
				fallthrough
			default:
				skipping = append(skipping, run)
			}
		}
		for _, run := range skipping {
			if err := p.forward(ctx, run, step); err != nil {
				return err
			}
		}
		d -= step
	}
	return nil
}

// live lists all runs of the stage that have not ended, once they rest.
func (p *performance) live(ctx context.Context) (all []*client.Run, err error) {
	for _, session := range p.sessions {
		if _, err := p.wait(ctx, session); err != nil {
			return nil, err
		}
		run, err := p.client.Get(ctx, session)
		if err != nil {
			return nil, err
		}
		runs, err := p.tree(ctx, run)
		if err != nil {
			return nil, err
		}
		all = append(all, runs...)
	}
	return all, nil
}

// clock is what a run thinks of time.
type clock struct {
	now, wake time.Time // wake is zero where nothing is due
	waits     bool      // for runs below it
}

// due is in how much time the run will look at its clock; zero where it will not.
func (c clock) due() time.Duration {
	if c.wake.IsZero() {
		return 0
	}
	return c.wake.Sub(c.now) + time.Millisecond // timers are exact to it
}

func (p *performance) clock(ctx context.Context, run *client.Run) (c clock, err error) {
	d, err := p.temporal.DescribeWorkflowExecution(ctx, run.Session, "")
	if err != nil {
		return c, fmt.Errorf("looking at the time of session %s: %w", run.Session, err)
	}
	c.now, c.waits = time.Now(), len(d.GetPendingChildren()) > 0
	if skipped := d.GetWorkflowExtendedInfo().GetTimeSkippingInfo(); skipped != nil {
		c.now = skipped.GetCurrentTime().AsTime()
	}
	raw, err := signals.State.Ask(ctx, p.temporal, run.Session, "", signals.None{})
	if err != nil {
		return c, err
	}
	var state struct{ Wake time.Time }
	err = json.Unmarshal(raw, &state)
	c.wake = state.Wake
	return c, err
}

// forward lets time go by for one run, and waits until it has done what fell due.
func (p *performance) forward(ctx context.Context, run *client.Run, d time.Duration) error {
	_, err := p.temporal.WorkflowService().UpdateWorkflowExecutionOptions(ctx, &workflowservice.UpdateWorkflowExecutionOptionsRequest{
		Namespace: p.namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.Session},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"time_skipping_config"}},
		WorkflowExecutionOptions: &workflowpb.WorkflowExecutionOptions{TimeSkippingConfig: &commonpb.TimeSkippingConfig{
			Enabled: true, FastForwardConfig: &commonpb.FastForwardConfig{Id: uuid.NewString(), Duration: durationpb.New(d)},
		}},
	})
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return nil // it has ended meanwhile
	}
	if err != nil {
		return fmt.Errorf("skipping time: %w; the server has to allow it (frontend.WorkflowTimeSkippingEnabled), as devserver does", err)
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		o, err := run.Wait(ctx)
		if err != nil || o.Status.Ended() {
			return err
		}
		if c, err := p.clock(ctx, run); err != nil || c.wake.IsZero() || c.due() > 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

// lookEvery is how often a run is asked whether it has done what was due.
const lookEvery = 5 * time.Millisecond
