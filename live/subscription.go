package live

import (
	"sync"

	"github.com/fermata-agents/fermata/agent"
)

// Limits of what a subscription keeps for a slow reader.
const (
	maxEvents = 1024
	maxBytes  = 1 << 20
)

// Subscription keeps a session's events until its reader takes them. If the reader is too
// slow it drops the oldest. An implementation of [Source] puts events into it. It is safe
// for concurrent use.
type Subscription struct {
	leave func()
	ready chan struct{}

	mu     sync.Mutex
	events []Event
	bytes  int
	lost   Event // the last dropped event, with the count; zero if none was dropped
	closed bool
}

// NewSubscription returns a subscription. leave is called once, when the reader closes
// it; it may be nil.
func NewSubscription(leave func()) *Subscription {
	return &Subscription{leave: leave, ready: make(chan struct{}, 1)}
}

// Put adds an event. It never waits.
func (s *Subscription) Put(e Event) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.events, s.bytes = append(s.events, e), s.bytes+size(e)
	// One event stays, however large: the reader gets something.
	for len(s.events) > maxEvents || s.bytes > maxBytes && len(s.events) > 1 {
		s.drop()
	}
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default: // the reader is told already, and will take this event too
	}
}

// drop drops the oldest event and counts it. An event that stands for dropped ones counts
// for all of them.
func (s *Subscription) drop() {
	oldest := s.events[0]
	n := s.lost.Data.Dropped + max(1, oldest.Data.Dropped)
	s.events[0] = Event{} // lets the text be freed
	s.events, s.bytes = s.events[1:], s.bytes-size(oldest)
	s.lost = oldest
	s.lost.Type, s.lost.Data = agent.EventDeltaDropped, Data{Dropped: n}
}

func size(e Event) int { return len(e.Data.Text) }

// Ready returns a channel that receives when there is something to take.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// Take returns the events since the last Take, in their order. If some were dropped it
// begins with an [agent.EventDeltaDropped].
func (s *Subscription) Take() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.events
	if s.lost.Data.Dropped > 0 {
		// In front: the oldest were dropped, so the gap is before the others.
		events = append([]Event{s.lost}, events...)
	}
	s.events, s.bytes, s.lost = nil, 0, Event{}
	return events
}

// Close ends the subscription; nothing more arrives. It may be called more than once.
func (s *Subscription) Close() {
	s.mu.Lock()
	was := s.closed
	s.closed, s.events = true, nil
	s.mu.Unlock()
	// Not under the lock: leave takes the source's lock, and the source calls Put under
	// it.
	if !was && s.leave != nil {
		s.leave()
	}
}
