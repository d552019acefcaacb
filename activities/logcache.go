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

// LogCache keeps the tails of the logs of runs that this process has lately worked on.
// The workflow puts them there before it schedules an activity, so an activity seldom has
// to query the run for one. A lost entry costs a query. It is safe for concurrent use.
type LogCache struct {
	mu    sync.Mutex
	tails *simplelru.LRU[string, cachedTail] // by execution: after a reset, the same run has another past
}

type cachedTail struct {
	head   string
	events []agent.Event
}

// maxCachedTails limits how many tails are kept. The tails share their memory with the
// states of cached workflows.
const maxCachedTails = 1024

// NewLogCache returns an empty cache; one serves a whole process.
func NewLogCache() *LogCache {
	lru, _ := simplelru.NewLRU[string, cachedTail](maxCachedTails, nil)
	return &LogCache{tails: lru}
}

// LogPosition is the position of an event in a run's log. A number alone is not enough: a
// workflow task that the server refused may have left other events with the same numbers
// in this process. Their times differ.
type LogPosition struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
}

// Put remembers the tail of an execution's log. The caller must not change the events
// afterwards.
func (t *LogCache) Put(execution, head string, events []agent.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tails.Add(execution, cachedTail{head, events})
}

// Drop forgets the tail of an execution.
func (t *LogCache) Drop(execution string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tails.Remove(execution)
}

// get returns the cached tail of an execution if it has the event at upTo.
func (t *LogCache) get(execution string, upTo LogPosition) (cachedTail, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	got, ok := t.tails.Get(execution)
	ok = ok && slices.ContainsFunc(got.events, func(e agent.Event) bool { return e.Seq == upTo.Seq && e.Time.Equal(upTo.Time) })
	return got, ok
}

// openTail returns a run's tail at least up to a position, from the cache or by a query.
func (d *Activities) openTail(ctx context.Context, upTo LogPosition) (got cachedTail, err error) {
	here := activity.GetInfo(ctx).WorkflowExecution
	// A test environment has no server to ask, and none that refuses a task: what is behind the
	// tail there is sealed.
	if got, ok := d.LogCache.get(here.RunID, upTo); ok || d.Client == nil {
		return got, nil
	}
	open, err := signals.ReadTail(ctx, d.Client, here.ID, here.RunID)
	if err != nil {
		// Whatever it was, a later attempt may find a worker that answers.
		return cachedTail{}, agent.Errorf(agent.CodeStoreUnavailable, "%w", err)
	}
	return cachedTail{open.Head, open.Events}, nil
}

// logUpTo returns a run's whole log up to a position. If the store or the run does not
// answer, it asks again for as long as the activity may take: the attempts of a model or
// tool call are counted, and a slow store must not use them up.
func (d *Activities) logUpTo(ctx context.Context, run string, upTo LogPosition) (*store.View, error) {
	return d.readUpTo(ctx, run, upTo, d.Log.Known)
}

// wholeUpTo returns the log up to a position with all that a model no longer knows.
func (d *Activities) wholeUpTo(ctx context.Context, run string, upTo LogPosition) (*store.View, error) {
	return d.readUpTo(ctx, run, upTo, func(ctx context.Context, head string, _ []agent.Event) (*store.View, error) {
		return d.Log.View(ctx, head)
	})
}

// readUpTo reads a log as logUpTo does; read reads its sealed part.
func (d *Activities) readUpTo(ctx context.Context, run string, upTo LogPosition, read func(ctx context.Context, head string, tail []agent.Event) (*store.View, error)) (view *store.View, err error) {
	err = patiently(ctx, func() error {
		open, err := d.openTail(ctx, upTo)
		if err != nil {
			return err
		}
		sealed, err := read(ctx, open.head, open.events)
		// The chunk was merged into another and collected, and an execution that was
		// reset still names it.
		if errors.Is(err, agent.CodeChunkMissing) && len(open.events) > 0 {
			sealed, err = d.Log.Instead(ctx, activity.GetInfo(ctx).WorkflowExecution.ID, open.events[0].Seq-1, err)
		}
		if err != nil {
			return err
		}
		view = sealed.With(open.events, upTo.Seq)
		// Else the model would see a conversation with a gap, or with events of a later
		// task.
		if view.Seq() != upTo.Seq {
			return agent.Errorf(agent.CodeChunkMissing, "the transcript of run %s ends at event %d, but event %d is needed", run, view.Seq(), upTo.Seq)
		}
		return nil
	})
	return view, err
}

// patiently repeats try, more and more slowly, while its error is retryable and the
// context lasts.
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
