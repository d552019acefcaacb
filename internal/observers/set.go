package observers

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/observe"
)

// Set is the observers of a worker. A nil Set has none. It is safe for concurrent use.
type Set struct {
	queues []*queue
	calls  []observe.CallObserver
	log    *slog.Logger
	stop   sync.Once
	// patience is how long Stop waits until all is delivered, and gapPatience how long after
	// that until observers have received the gaps.
	patience, gapPatience time.Duration
}

// Times that [Set.Stop] waits.
const (
	stopPatience = 5 * time.Second
	gapPatience  = time.Second
)

// New returns a Set; nil if the list is empty. It starts no goroutine: an observer has one
// only while events wait for it.
func New(list []observe.Observer, log *slog.Logger) *Set {
	if len(list) == 0 {
		return nil
	}
	s := &Set{log: log, patience: stopPatience, gapPatience: gapPatience}
	for _, o := range list {
		s.queues = append(s.queues, newQueue(o, log))
		if c, ok := o.(observe.CallObserver); ok {
			s.calls = append(s.calls, c)
		}
	}
	return s
}

// Event puts an event into each observer's queue. It never waits for an observer, so
// workflow code may call it.
func (s *Set) Event(e *observe.RunEvent) {
	if s == nil {
		return
	}
	size := itemSize + e.Event.Size()
	for _, q := range s.queues {
		q.put(e, size)
	}
}

// Drain waits until every observer has received the events that were observed before the
// call, or the gaps that replace them: those of a session and of the sessions below it, or
// all if session is empty. The error is [agent.CodeTimeout] if the context ends before.
func (s *Set) Drain(ctx context.Context, session string) error {
	if s == nil {
		return nil
	}
	waits := make([]*waiter, len(s.queues)) // first all: what comes while it waits for one observer does not count
	for i, q := range s.queues {
		waits[i] = q.mark(session)
	}
	var behind []string
	for i, q := range s.queues {
		if left := q.await(ctx, waits[i]); left > 0 {
			behind = append(behind, fmt.Sprintf("%s has %d to receive", q.name, left))
		}
	}
	if len(behind) > 0 {
		return agent.Errorf(agent.CodeTimeout, "draining observers: %s: %w", strings.Join(behind, ", "), context.Cause(ctx))
	}
	return nil
}

// Stop waits a bounded time until everything is delivered. Then the observers' context ends.
// What is left becomes gaps. Call it when no run can add events any more; what is added later
// becomes gaps, too. It may be called more than once.
func (s *Set) Stop() {
	if s == nil {
		return
	}
	s.stop.Do(func() {
		late := s.drainWithin(s.patience) != nil
		for _, q := range s.queues {
			if left := q.close(); left > 0 {
				s.log.Warn("the worker has stopped, and an observer has not received all events", "observer", q.name, "events", left)
			}
		}
		if !late {
			return
		}
		if err := s.drainWithin(s.gapPatience); err != nil {
			s.log.Error("an observer hangs, and does not learn which events it lacks", "error", err)
		}
	})
}

func (s *Set) drainWithin(d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return s.Drain(ctx, "")
}
