package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
)

// listener hears a run. It is used by one goroutine.
type listener interface {
	// Event hears what is recorded, in its order.
	Event(agent.Event)
	// Live hears what is not: pieces of replies and progress of tools.
	Live(activities.Live)
	// Waiting tells whether the listener holds something back, for Flush to let go.
	Waiting() bool
	Flush()
	Note(format string, args ...any)
}

// pieces is what a worker in this process hands over and must not wait for.
type pieces struct {
	mu    sync.Mutex
	list  []activities.Live
	ready chan struct{} // has room for one: there is something
}

func newPieces() *pieces { return &pieces{ready: make(chan struct{}, 1)} }

func (p *pieces) put(l activities.Live) {
	p.mu.Lock()
	p.list = append(p.list, l)
	p.mu.Unlock()
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

func (p *pieces) take() []activities.Live {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list
	p.list = nil
	return list
}

const (
	// holdFor is how long the end of a call may wait for what the model is told of it.
	holdFor = 250 * time.Millisecond
	// lastEvents is how long the last events may take when the run has ended.
	lastEvents = 3 * time.Second
	// takenWithin is how soon a worker begins with a run, if there is one.
	takenWithin = 3 * time.Second
	// lookAgain is the pause before a run is followed again that could not be asked.
	lookAgain = time.Second
)

// errUntaken says that no worker has begun with the run.
var errUntaken = errors.New("no worker takes the run")

// follower follows one run to its end.
type follower struct {
	run   *fermata.Run
	to    listener
	live  *pieces
	taken func() bool // whether some worker has begun with the run
	heard *int64      // the last event that was told

	events  chan agent.Event
	trouble chan error // why the run can't be asked at the moment
	results chan result
}

type result struct {
	outcome *agent.Outcome
	err     error
}

// follow tells a run as it goes, from the event after heard on, and returns how it ended.
func follow(ctx context.Context, run *fermata.Run, heard *int64, live *pieces, to listener, taken func() bool) (*agent.Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &follower{run: run, to: to, live: live, taken: taken, heard: heard, events: make(chan agent.Event), trouble: make(chan error), results: make(chan result, 1)}
	go f.read(ctx, *heard)
	go func() {
		o, err := run.Result(ctx)
		f.results <- result{o, err}
	}()
	return f.loop(ctx)
}

// read reads the run's events until its end, and begins again where a worker or
// the server was away.
func (f *follower) read(ctx context.Context, seq int64) {
	defer close(f.events)
	ours := seq > 0 // else the session may have had runs before
	for {
		failed := false
		for e, err := range f.run.Follow(ctx, seq) {
			if err != nil {
				failed = send(ctx, f.trouble, err)
				break
			}
			seq = e.Seq
			if e.Started != nil {
				ours = e.Started.Run == f.run.ID
			}
			if ours && !send(ctx, f.events, e) {
				return
			}
		}
		if !failed || !pause(ctx, lookAgain) {
			return
		}
	}
}

func send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (f *follower) loop(ctx context.Context) (*agent.Outcome, error) {
	var end *result
	var late, held <-chan time.Time
	told := false
	untaken := time.After(takenWithin)
	events := f.events
	for end == nil || events != nil {
		select {
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			*f.heard, told = e.Seq, false
			f.to.Event(e)
			if held = nil; f.to.Waiting() {
				held = time.After(holdFor)
			}
		case err := <-f.trouble:
			if !told && end == nil {
				told = true
				f.to.Note("the run can't be followed at the moment, and goes on by itself: %v", err)
			}
		case <-untaken:
			if *f.heard == 0 && end == nil && !f.taken() {
				return nil, errUntaken
			}
		case <-f.live.ready:
			f.hear()
		case <-held:
			f.to.Flush()
			held = nil
		case r := <-f.results:
			end, late = &r, time.After(lastEvents)
			if r.err != nil {
				return nil, r.err
			}
		case <-late:
			events = nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return end.outcome, nil
}

// hear tells the pieces of this run; a worker may have others.
func (f *follower) hear() {
	for _, l := range f.live.take() {
		if l.Session == f.run.Session && l.Run == f.run.ID {
			f.to.Live(l)
		}
	}
}
