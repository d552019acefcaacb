package client

import (
	"context"
	"fmt"
	"iter"

	"go.temporal.io/api/enums/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// Follow yields the events of the run's log after one (zero: from the
// session's beginning) and goes on as they come, until the run's end or the
// context's. The history's long poll wakes it; each time it asks the run, which
// needs a worker and writes nothing to the history. What is no longer open is
// read from the store: without one that is [agent.NotSetUp].
func (r *Run) Follow(ctx context.Context, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		f := &follower{run: r, seq: after, yield: yield}
		if err := f.follow(ctx); err != nil && !f.left {
			yield(agent.Event{}, fmt.Errorf("following session %s: %w", r.Session, err))
		}
	}
}

type follower struct {
	run   *Run
	seq   int64
	yield func(agent.Event, error) bool
	left  bool // the reader has had enough
}

func (f *follower) follow(ctx context.Context) error {
	info, err := f.run.execution(ctx)
	if err != nil {
		return err
	}
	execution, known := info.GetExecution().GetRunId(), info.GetHistoryLength()
	if err := f.catchUp(ctx, execution); err != nil || f.left {
		return err
	}
	for execution != "" {
		if execution, err = f.wait(ctx, execution, known); err != nil || f.left {
			return err
		}
		known = 0
	}
	return nil
}

// wait follows one execution to its end and returns the next, if there is one.
// Every change of the log is made in a workflow task; those up to the event
// known are seen already.
func (f *follower) wait(ctx context.Context, execution string, known int64) (next string, err error) {
	events := f.run.client.temporal.GetWorkflowHistory(ctx, f.run.Session, execution, true, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return "", durable.ArriveRPC(err)
		}
		next = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		if e.GetEventType() != enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED || e.GetEventId() <= known {
			continue
		}
		if err := f.catchUp(ctx, execution); err != nil || f.left {
			return "", err
		}
	}
	if next == "" {
		err = f.catchUp(ctx, execution)
	}
	return next, err
}

// catchUp yields what is new, from the run's open part and, where that was
// sealed meanwhile, from the store.
func (f *follower) catchUp(ctx context.Context, execution string) error {
	for {
		open, err := signals.Tail.Ask(ctx, f.run.client.temporal, f.run.Session, execution, signals.After{Seq: f.seq})
		if err != nil {
			return err
		}
		if err := f.sealed(ctx, open); err != nil || f.left {
			return err
		}
		if !f.hand(open.Events) || !open.More {
			return nil
		}
	}
}

// sealed yields what lies between the last event and the open part.
func (f *follower) sealed(ctx context.Context, open signals.Open) error {
	gapless := len(open.Events) > 0 && open.Events[0].Seq == f.seq+1
	if open.Head == "" || gapless {
		return nil
	}
	if f.run.client.log == nil {
		return agent.Errorf(agent.NotSetUp, "a part of the run's events is in the store that the workers use: set client.Options.Store")
	}
	view, err := f.run.client.log.View(ctx, open.Head)
	if err != nil {
		return err
	}
	f.hand(view.Events())
	return nil
}

func (f *follower) hand(events []agent.Event) bool {
	for _, e := range events {
		if e.Seq <= f.seq {
			continue
		}
		if !f.yield(e, nil) {
			f.left = true
			return false
		}
		f.seq = e.Seq
	}
	return true
}
