package live

import (
	"sync"

	"github.com/fermata-agents/fermata/agent"
)

// What a subscription keeps for a reader that is slow.
const (
	maxEvents = 1024
	maxBytes  = 1 << 20
)

// Subscription keeps a session's events until its reader takes them, and drops
// the oldest of a reader that is too slow. Whoever implements a [Source] puts
// into it. It is safe for concurrent use.
type Subscription struct {
	leave func()
	ready chan struct{}

	mu     sync.Mutex
	events []Event
	bytes  int
	lost   Event // the last that was dropped, with how many; zero if none was
	closed bool
}

// NewSubscription returns a subscription. leave is called once, when the reader
// closes it; nil if nobody wants to know.
func NewSubscription(leave func()) *Subscription {
	return &Subscription{leave: leave, ready: make(chan struct{}, 1)}
}

// Put hands the reader an event. It never waits.
func (s *Subscription) Put(e Event) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.events, s.bytes = append(s.events, e), s.bytes+size(e)
	for len(s.events) > maxEvents || s.bytes > maxBytes && len(s.events) > 1 {
		s.drop()
	}
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// drop drops the oldest event, and remembers that in its place. What was dropped
// by whoever put it counts too.
func (s *Subscription) drop() {
	oldest := s.events[0]
	n := s.lost.Data.Dropped + max(1, oldest.Data.Dropped)
	s.events[0] = Event{}
	s.events, s.bytes = s.events[1:], s.bytes-size(oldest)
	s.lost = oldest
	s.lost.Type, s.lost.Data = agent.EventDeltaDropped, Data{Dropped: n}
}

func size(e Event) int { return len(e.Data.Text) }

// Ready receives when there is something to take.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// Take returns what has come since the last Take, in the order in which it came.
// Where something was dropped it begins with an [agent.EventDeltaDropped].
func (s *Subscription) Take() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.events
	if s.lost.Data.Dropped > 0 {
		events = append([]Event{s.lost}, events...)
	}
	s.events, s.bytes, s.lost = nil, 0, Event{}
	return events
}

// Close ends the subscription: nothing comes any more. It may be called more than
// once.
func (s *Subscription) Close() {
	s.mu.Lock()
	was := s.closed
	s.closed, s.events = true, nil
	s.mu.Unlock()
	if !was && s.leave != nil {
		s.leave()
	}
}
