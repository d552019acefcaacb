package nats

import (
	"sync"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
)

// What a queue keeps while the broker is slow.
const (
	maxEvents = 4096
	maxBytes  = 4 << 20
)

// queue is what was published and not sent yet. Whoever puts into it never waits.
type queue struct {
	ready chan struct{}

	mu     sync.Mutex
	events []live.Event
	bytes  int
	lost   map[string]live.Event // what is to be told of what was dropped, by session
	closed bool
}

func newQueue() *queue {
	return &queue{ready: make(chan struct{}, 1), lost: map[string]live.Event{}}
}

// put adds an event, behind what its session has lost, or drops it.
func (q *queue) put(e live.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := len(e.Data.Text)
	if q.closed || len(q.events) >= maxEvents || q.bytes+size > maxBytes {
		q.loses(e)
		return
	}
	if l, ok := q.lost[e.Session]; ok {
		q.events = append(q.events, l)
		delete(q.lost, e.Session)
	}
	q.events, q.bytes = append(q.events, e), q.bytes+size
	q.wake()
}

// drop remembers an event that could not be sent. It is told with what comes next: the
// sender would try forever otherwise.
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

// take waits for what is there, and takes it; open is false when no more comes. What
// was lost came behind all that its session has here.
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

// close ends the queue: who takes gets what is there, and no more comes.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake()
}
