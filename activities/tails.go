package activities

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// Tails keeps the open parts of the logs of runs that this process has lately
// worked on, so that a step seldom has to ask for one. The workflow side puts
// them there before it schedules a step. Losing one costs a query.
type Tails struct {
	mu   sync.Mutex
	tail *simplelru.LRU[string, tail] // by execution: a reset one has another past
}

type tail struct {
	head   string
	events []agent.Event
}

// maxTails bounds how many open parts are kept. They share their memory with
// the states of cached workflows.
const maxTails = 1024

// NewTails returns an empty cache; one serves a whole process.
func NewTails() *Tails {
	lru, _ := simplelru.NewLRU[string, tail](maxTails, nil)
	return &Tails{tail: lru}
}

// Place is an event of a run's log. Beside its number stands its time, since a
// workflow task whose outcome the server did not take may have left other events
// under the same numbers in this process.
type Place struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
}

// Put remembers the open part of an execution's log; events are never changed
// afterwards.
func (t *Tails) Put(execution, head string, events []agent.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tail.Add(execution, tail{head, events})
}

// Drop forgets an execution that has ended.
func (t *Tails) Drop(execution string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tail.Remove(execution)
}

// get returns what is kept of an execution if it reaches as far as a place.
func (t *Tails) get(execution string, upTo Place) (tail, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	got, ok := t.tail.Get(execution)
	ok = ok && slices.ContainsFunc(got.events, func(e agent.Event) bool { return e.Seq == upTo.Seq && e.Time.Equal(upTo.Time) })
	return got, ok
}

// openTail finds a run's open part up to a place, here or by asking the run.
func (d *Deeds) openTail(ctx context.Context, upTo Place) (got tail, err error) {
	here := activity.GetInfo(ctx).WorkflowExecution
	if got, ok := d.Tails.get(here.RunID, upTo); ok {
		return got, nil
	}
	open, err := signals.ReadOpen(ctx, d.Client, here.ID, here.RunID)
	if err != nil {
		// Whatever it was, a later attempt may find a worker that answers.
		return tail{}, agent.Errorf(agent.StoreUnavailable, "%w", err)
	}
	return tail{open.Head, open.Events}, nil
}

// logUpTo is a run's whole log up to a place. A store or a run that does not
// answer is asked again for as long as the step may take: it is not for the
// model or the tool, whose attempts are counted, to pay for it.
func (d *Deeds) logUpTo(ctx context.Context, run string, upTo Place) (view *store.View, err error) {
	err = patiently(ctx, func() error {
		open, err := d.openTail(ctx, upTo)
		if err != nil {
			return err
		}
		sealed, err := d.Log.Known(ctx, open.head, open.events)
		if errors.Is(err, agent.ChunkMissing) && len(open.events) > 0 {
			sealed, err = d.Log.Instead(ctx, activity.GetInfo(ctx).WorkflowExecution.ID, open.events[0].Seq-1, err)
		}
		if err != nil {
			return err
		}
		view = sealed.With(open.events, upTo.Seq)
		if view.Seq() != upTo.Seq {
			return agent.Errorf(agent.ChunkMissing, "the transcript of run %s ends at event %d; event %d is wanted", run, view.Seq(), upTo.Seq)
		}
		return nil
	})
	return view, err
}

// patiently repeats what may succeed later, ever more slowly, until the context ends.
func patiently(ctx context.Context, try func() error) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := try()
		var e *agent.Error
		if err == nil || !errors.As(err, &e) || !e.Retryable {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}
