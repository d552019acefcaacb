package activities

import (
	"context"
	"sync"

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
	tail *simplelru.LRU[string, tail] // by run
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

// Put remembers a run's open part; events are never changed afterwards.
func (t *Tails) Put(run, head string, events []agent.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tail.Add(run, tail{head, events})
}

// Drop forgets a run that has ended.
func (t *Tails) Drop(run string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tail.Remove(run)
}

// get returns what is kept of a run if it reaches as far as the event upTo.
func (t *Tails) get(run string, upTo int64) (tail, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	got, ok := t.tail.Get(run)
	n := len(got.events)
	return got, ok && n > 0 && got.events[n-1].Seq >= upTo
}

// openTail finds a run's open part up to an event, here or by asking the run.
func (d *Deeds) openTail(ctx context.Context, run string, upTo int64) (tail, error) {
	if got, ok := d.Tails.get(run, upTo); ok {
		return got, nil
	}
	here := activity.GetInfo(ctx).WorkflowExecution
	open, err := signals.ReadOpen(ctx, d.Client, here.ID, here.RunID)
	if err != nil {
		// Whatever it was, a later attempt may find a worker that answers.
		return tail{}, agent.Errorf(agent.StoreUnavailable, "%w", err)
	}
	return tail{open.Head, open.Events}, nil
}

// logUpTo is a run's whole log up to an event.
func (d *Deeds) logUpTo(ctx context.Context, run string, upTo int64) (*store.View, error) {
	open, err := d.openTail(ctx, run, upTo)
	if err != nil {
		return nil, err
	}
	sealed, err := d.Log.View(ctx, open.head)
	if err != nil {
		return nil, err
	}
	view := sealed.With(open.events, upTo)
	if view.Seq() != upTo {
		return nil, agent.Errorf(agent.ChunkMissing, "the transcript of run %s ends at event %d; event %d is wanted", run, view.Seq(), upTo)
	}
	return view, nil
}
