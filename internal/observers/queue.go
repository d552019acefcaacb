package observers

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/fermata-agents/fermata/observe"
)

// Limits of what waits for one observer. A hanging observer keeps no more than that.
const (
	maxEvents = 8192
	maxBytes  = 16 << 20
	// maxGaps is how many gaps of single runs wait, and how many of top sessions. The events of further
	// runs are only counted.
	maxGaps = 1024
	// itemSize is what an event takes beside its texts.
	itemSize = 700
)

// queue is what waits for one observer, in order.
type queue struct {
	to     observe.Observer
	name   string // the observer's type
	log    *slog.Logger
	ctx    context.Context // what the observer is called with
	cancel context.CancelFunc
	panics int // only the delivering goroutine uses it

	mu    sync.Mutex
	items []item // items[head:] wait
	head  int
	// events, bytes, gaps of single runs and wide gaps of top sessions count what waits. shares has the
	// same for each top session of which something waits.
	events, bytes, gaps, wide int
	shares                    map[string]*share
	// open are the gaps that still grow, by run. No event of the run waits behind its gap.
	open map[run]*observe.Gap
	// counted is the gap of the top sessions that have none of their own; nil if no such event was
	// lost since the last event that was taken.
	counted *observe.Gap
	// full means that the queue has lost events, and takes none until it is half empty. So
	// gaps are long and few.
	full   bool
	closed bool // it takes no events any more
	// delivering means that the goroutine runs. current is what the observer has now; its
	// pos is zero if it has nothing.
	delivering bool
	current    item
	last       uint64 // the pos of the last item that was added
	waiters    []*waiter
}

// run identifies a run.
type run struct{ session, id string }

// item is an event, or a gap.
type item struct {
	event observe.RunEvent
	gap   *observe.Gap // nil for an event
	bytes int
	pos   uint64 // counts the items of the queue, from 1
}

func (it *item) session() string {
	if it.gap != nil {
		return it.gap.Session
	}
	return it.event.Session
}

// waiter waits until the item at pos is delivered.
type waiter struct {
	pos  uint64
	done chan struct{}
}

func newQueue(to observe.Observer, log *slog.Logger) *queue {
	q := &queue{to: to, name: fmt.Sprintf("%T", to), log: log, open: map[run]*observe.Gap{}, shares: map[string]*share{}}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// put adds an event of a size, or counts it as lost. It never waits for the observer.
func (q *queue) put(e *observe.RunEvent, size int) {
	if q.add(e, size) {
		q.log.Warn("an observer is too slow, and loses events: it learns which", "observer", q.name, "session", e.Session, "event", e.Event.Seq)
	}
}

// add is put under the lock. It reports whether the queue is full from now on, for the top session of the
// event or for all.
func (q *queue) add(e *observe.RunEvent, size int) (overflows bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	top, events, bytes := q.shareOf(e.Session), maxEvents, maxBytes
	was := q.full || top.full
	if q.full {
		events, bytes = events/2, bytes/2
	}
	// One event is taken however large it is: the observer gets something. What a top session has too
	// much does not make the queue full for the others.
	top.full = q.events > 0 && q.refuses(top, size)
	if !top.full {
		q.full = q.events > 0 && (q.events >= events || q.bytes+size > bytes)
	}
	if top.full || q.full || q.closed {
		q.lose(observe.Gap{Session: e.Session, Run: e.Run, Agent: e.Agent, From: e.Event.Seq, To: e.Event.Seq, Events: 1})
		return !was && !q.closed
	}
	delete(q.open, run{e.Session, e.Run})
	q.counted, top.lost = nil, nil
	q.events, q.bytes = q.events+1, q.bytes+size
	top.events, top.bytes = top.events+1, top.bytes+size
	q.push(item{event: *e, bytes: size})
	return false
}

// lose adds lost events to the run's gap.
func (q *queue) lose(lost observe.Gap) {
	of := run{lost.Session, lost.Run}
	// Between the two, events were lost by another worker, or a task is repeated.
	g := q.open[of]
	if joins := g != nil && g.From <= lost.From && lost.From <= g.To+1; joins {
		g.To = max(g.To, lost.To)
	} else {
		g = q.gapFor(lost)
	}
	g.Events += lost.Events
}

// push adds an item, and starts the goroutine if it does not run.
func (q *queue) push(it item) {
	q.last++
	it.pos = q.last
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 { // use the delivered half again
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, it)
	if !q.delivering {
		q.delivering = true
		go q.deliver()
	}
}

// deliver calls the observer until nothing waits.
func (q *queue) deliver() {
	idle := false
	defer func() {
		if !idle { // the observer has ended the goroutine
			go q.deliver()
		}
	}()
	for q.take() {
		q.call()
	}
	idle = true
}

// keep is how many slots an empty queue keeps.
const keep = 256

// take makes the next item the current one, and reports whether there is one.
func (q *queue) take() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.items) {
		q.delivering = false
		if q.items, q.head = q.items[:0], 0; cap(q.items) > keep {
			q.items = nil
		}
		return false
	}
	q.current, q.items[q.head] = q.items[q.head], item{} // lets the event be freed
	q.head++
	q.taken(q.current)
	return true
}

// call passes the current item to the observer. Only the delivering goroutine writes it, so
// it is read without the lock.
func (q *queue) call() {
	returned := false
	defer func() {
		if p := recover(); !returned {
			q.panicked(p)
		}
		q.delivered()
	}()
	if q.current.gap != nil {
		q.to.Gap(q.ctx, *q.current.gap)
	} else {
		q.to.Event(q.ctx, q.current.event)
	}
	returned = true
}

// panicked logs a panic; nil stands for runtime.Goexit. It logs the first, the second, the
// fourth and so on, since an observer may panic at each event.
func (q *queue) panicked(p any) {
	if q.panics++; q.panics&(q.panics-1) == 0 {
		q.log.Error("an observer panicked", "observer", q.name, "panics", q.panics, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}

// delivered tells those who wait for the current item.
func (q *queue) delivered() {
	q.mu.Lock()
	defer q.mu.Unlock()
	still := q.waiters[:0]
	for _, w := range q.waiters {
		if w.pos <= q.current.pos {
			close(w.done)
		} else {
			still = append(still, w)
		}
	}
	clear(q.waiters[len(still):])
	q.waiters, q.current = still, item{}
}

// mark returns a waiter for all that waits now: for a session and those below it, or for all
// if session is empty. It is nil if nothing waits.
func (q *queue) mark(session string) *waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	pos := uint64(0)
	if q.current.pos > 0 && q.current.concerns(session) {
		pos = q.current.pos
	}
	for i := len(q.items) - 1; i >= q.head; i-- {
		if q.items[i].concerns(session) {
			pos = q.items[i].pos
			break
		}
	}
	if pos == 0 {
		return nil
	}
	w := &waiter{pos, make(chan struct{})}
	q.waiters = append(q.waiters, w)
	return w
}

// concerns reports whether an item may be of a session or of one below it. The gap of a top session may be
// of any session below that.
func (it *item) concerns(session string) bool {
	of := it.session()
	return within(of, session) || it.gap != nil && it.gap.Run == "" && of == topOf(session)
}

// within reports whether session is top or below it. A gap without a session may be of any.
func within(session, top string) bool {
	rest, ok := strings.CutPrefix(session, top)
	return top == "" || session == "" || ok && (rest == "" || rest[0] == '/')
}

// await waits for a waiter. It returns how many items wait if the context ends before.
func (q *queue) await(ctx context.Context, w *waiter) (left int) {
	if w == nil {
		return 0
	}
	select {
	case <-w.done:
		return 0
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, one := range q.waiters {
		if one == w {
			q.waiters = append(q.waiters[:i], q.waiters[i+1:]...)
			return len(q.items) - q.head + min(1, int(q.current.pos))
		}
	}
	return 0 // delivered just now
}

// close makes gaps of all events that wait, and ends the observer's context. It returns how
// many events there were, with the one that the observer has.
func (q *queue) close() (left int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.cancel()
	waiting := q.items[q.head:]
	q.items, q.head, q.closed = nil, 0, true
	q.events, q.bytes, q.gaps, q.wide, q.counted = 0, 0, 0, 0, nil
	clear(q.open)
	clear(q.shares)
	for _, it := range waiting {
		lost := observe.Gap{Session: it.event.Session, Run: it.event.Run, Agent: it.event.Agent, From: it.event.Event.Seq, To: it.event.Event.Seq, Events: 1}
		if it.gap != nil {
			lost = *it.gap
		}
		left += lost.Events
		q.lose(lost)
	}
	if q.current.pos > 0 && q.current.gap == nil {
		left++
	}
	return left
}
