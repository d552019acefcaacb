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

// LogCache keeps the open parts of the logs of runs that this process has lately
// worked on, so that a step seldom has to ask for one. The workflow side puts
// them there before it schedules a step. Losing one costs a query.
type LogCache struct {
	mu    sync.Mutex
	tails *simplelru.LRU[string, cachedTail] // by execution: a reset one has another past
}

type cachedTail struct {
	head   string
	events []agent.Event
}

// maxCachedTails bounds how many open parts are kept. They share their memory with
// the states of cached workflows.
const maxCachedTails = 1024

// NewLogCache returns an empty cache; one serves a whole process.
func NewLogCache() *LogCache {
	lru, _ := simplelru.NewLRU[string, cachedTail](maxCachedTails, nil)
	return &LogCache{tails: lru}
}

// LogPosition is an event of a run's log. Beside its number stands its time, since a
// workflow task whose outcome the server did not take may have left other events
// under the same numbers in this process.
type LogPosition struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
}

// Put remembers the open part of an execution's log; events are never changed
// afterwards.
func (t *LogCache) Put(execution, head string, events []agent.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tails.Add(execution, cachedTail{head, events})
}

// Drop forgets an execution that has ended.
func (t *LogCache) Drop(execution string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tails.Remove(execution)
}

// get returns what is kept of an execution if it reaches as far as a place.
func (t *LogCache) get(execution string, upTo LogPosition) (cachedTail, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	got, ok := t.tails.Get(execution)
	ok = ok && slices.ContainsFunc(got.events, func(e agent.Event) bool { return e.Seq == upTo.Seq && e.Time.Equal(upTo.Time) })
	return got, ok
}

// openTail finds a run's open part up to a place, here or by asking the run.
func (d *Activities) openTail(ctx context.Context, upTo LogPosition) (got cachedTail, err error) {
	here := activity.GetInfo(ctx).WorkflowExecution
	if got, ok := d.LogCache.get(here.RunID, upTo); ok {
		return got, nil
	}
	open, err := signals.ReadTail(ctx, d.Client, here.ID, here.RunID)
	if err != nil {
		// Whatever it was, a later attempt may find a worker that answers.
		return cachedTail{}, agent.Errorf(agent.CodeStoreUnavailable, "%w", err)
	}
	return cachedTail{open.Head, open.Events}, nil
}

// logUpTo is a run's whole log up to a place. A store or a run that does not
// answer is asked again for as long as the step may take: it is not for the
// model or the tool, whose attempts are counted, to pay for it.
func (d *Activities) logUpTo(ctx context.Context, run string, upTo LogPosition) (view *store.View, err error) {
	err = patiently(ctx, func() error {
		open, err := d.openTail(ctx, upTo)
		if err != nil {
			return err
		}
		sealed, err := d.Log.Known(ctx, open.head, open.events)
		if errors.Is(err, agent.CodeChunkMissing) && len(open.events) > 0 {
			sealed, err = d.Log.Instead(ctx, activity.GetInfo(ctx).WorkflowExecution.ID, open.events[0].Seq-1, err)
		}
		if err != nil {
			return err
		}
		view = sealed.With(open.events, upTo.Seq)
		if view.Seq() != upTo.Seq {
			return agent.Errorf(agent.CodeChunkMissing, "the transcript of run %s ends at event %d, but event %d is needed", run, view.Seq(), upTo.Seq)
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
