package testsuite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/signals"
)

// skip lets time pass from one visible event to the next, so that the person can answer
// in between.
func (p *serverBackend) skip(ctx context.Context, d time.Duration) error {
	for d > 0 {
		runs, err := p.live(ctx)
		if err != nil {
			return err
		}
		step, skipping := d, []*client.Run{}
		for _, run := range runs {
			c, err := p.clock(ctx, run)
			if err != nil {
				return err
			}
			if c.waits { // its children's time counts
				continue
			}
			// Never beyond the next event: the person may answer it before more time passes.
			if due := c.seen(); due > 0 {
				step = min(step, due)
			}
			skipping = append(skipping, run)
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

// live returns all live runs of the Env, once they are suspended.
func (p *serverBackend) live(ctx context.Context) (all []*client.Run, err error) {
	for _, session := range p.sessions {
		if _, err := p.wait(ctx, session); err != nil {
			return nil, err
		}
		run, err := p.get(ctx, session)
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

// clock is a run's view of time.
type clock struct {
	now   time.Time
	wake  time.Time   // when its timer fires; zero if none is set
	marks []time.Time // visible events that are due: deadlines, reminders, the end of a park
	waits bool        // for child runs
}

// seen returns how long it is until the next visible event; zero if there is none.
func (c clock) seen() (due time.Duration) {
	for _, at := range c.marks {
		if in := at.Sub(c.now) + time.Millisecond; !at.IsZero() && in > 0 && (due == 0 || in < due) { // timers are accurate to 1 ms
			due = in
		}
	}
	return due
}

// reached reports whether the run has reached a time and done everything that was due by
// then.
func (c clock) reached(at time.Time) bool {
	return !c.now.Before(at) && (c.wake.IsZero() || c.wake.After(c.now))
}

func (p *serverBackend) clock(ctx context.Context, run *client.Run) (c clock, err error) {
	d, err := p.temporal.DescribeWorkflowExecution(ctx, run.Session, "")
	if err != nil {
		return c, fmt.Errorf("looking at the time of session %s: %w", run.Session, err)
	}
	// Each run has its own clock. One that has skipped nothing has the real time.
	c.now, c.waits = time.Now(), len(d.GetPendingChildren()) > 0
	if skipped := d.GetWorkflowExtendedInfo().GetTimeSkippingInfo(); skipped != nil {
		c.now = skipped.GetCurrentTime().AsTime()
	}
	raw, err := signals.State.Ask(ctx, p.temporal, run.Session, "", signals.None{})
	if err != nil {
		return c, err
	}
	var state loop.State
	if err := json.Unmarshal(raw, &state); err != nil {
		return c, err
	}
	c.wake = state.NextTimer
	s, err := run.Suspension(ctx)
	if err != nil || s == nil {
		return c, err
	}
	c.marks = append(c.marks, s.Expires)
	for _, q := range s.Requests {
		c.marks = append(c.marks, q.RemindAt, q.Deadline)
	}
	return c, nil
}

// forward lets time pass for one run, and waits until it has done what became due.
func (p *serverBackend) forward(ctx context.Context, run *client.Run, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	c, err := p.clock(ctx, run)
	if err != nil {
		return err
	}
	target := c.now.Add(d)
	_, err = p.temporal.WorkflowService().UpdateWorkflowExecutionOptions(ctx, &workflowservice.UpdateWorkflowExecutionOptionsRequest{
		Namespace: p.namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.Session},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"time_skipping_config"}},
		WorkflowExecutionOptions: &workflowpb.WorkflowExecutionOptions{TimeSkippingConfig: &commonpb.TimeSkippingConfig{
			Enabled: true, FastForwardConfig: &commonpb.FastForwardConfig{Id: uuid.NewString(), Duration: durationpb.New(d)}, MaxSessionSkipCount: math.MaxInt32,
		}},
	})
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return nil // it has ended since then
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
		if c, err := p.clock(ctx, run); err != nil || c.reached(target) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("skipping time: session %s is not where it should be: %w", run.Session, ctx.Err())
		case <-look.C:
		}
	}
}

// lookEvery is how often a run is asked again.
const lookEvery = 5 * time.Millisecond
