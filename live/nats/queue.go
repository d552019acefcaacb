package nats

import (
	"sync"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
)

// Limits of a queue while the broker is slow.
const (
	maxEvents = 4096
	maxBytes  = 4 << 20
)

// queue has the events that are published and not sent yet. Adding to it never waits.
type queue struct {
	ready chan struct{}

	mu     sync.Mutex
	events []live.Event
	bytes  int
	lost   map[string]live.Event // a dropped event for each session, not reported yet
	closed bool
}

func newQueue() *queue {
	return &queue{ready: make(chan struct{}, 1), lost: map[string]live.Event{}}
}

// put adds an event, after the report of what its session has lost. If the queue is full
// it drops the event.
func (q *queue) put(e live.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := len(e.Data.Text)
	if q.closed || len(q.events) >= maxEvents || q.bytes+size > maxBytes {
		q.loses(e)
		return
	}
	// Before the event, so that a reader sees the gap where it is.
	if l, ok := q.lost[e.Session]; ok {
		q.events = append(q.events, l)
		delete(q.lost, e.Session)
	}
	q.events, q.bytes = append(q.events, e), q.bytes+size
	q.wake()
}

// drop counts an event that could not be sent. The report goes out with the next events.
// It does not wake the sender, which would otherwise retry for ever.
func (q *queue) drop(e live.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.loses(e)
}

func (q *queue) loses(e live.Event) {
	n := q.lost[e.Session].Data.Dropped + max(1, e.Data.Dropped)
	e.Type, e.Data = agent.EventDeltaDropped, live.Data{Dropped: n}
	q.lost[e.Session] = e
}

func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take waits for events and takes them. open is false when no more will come. A session's
// report of dropped events comes after its events here, since those were dropped last.
func (q *queue) take() (list []live.Event, open bool) {
	<-q.ready
	q.mu.Lock()
	defer q.mu.Unlock()
	list = q.events
	for session, l := range q.lost {
		list = append(list, l)
		delete(q.lost, session)
	}
	q.events, q.bytes = nil, 0
	return list, !q.closed
}

// close ends the queue. The sender still gets what is there.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake()
}
