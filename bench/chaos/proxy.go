package main

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// proxy stands between the processes and their store. Each write is one request, and may
// be dropped, held back past its answer, doubled or reordered. What it holds back outlives
// the process that wrote it. It never says that a write is stored before it is. A read is
// done beside it, when the proxy has said that the store does not hang.
type proxy struct {
	store store.Store
	pick  func(*write) (mishap, later)
	plan  *plan
	calm  atomic.Bool // writes pass as they come

	mu sync.Mutex
	// freeze stops the process that makes a write, and returns what lets it go on; nil if
	// that can't be now.
	freeze  func(pid int) (thaw func())
	nth     map[string]int         // writes that came, by kind and session
	made    map[string]int         // writes that were made, by session
	total   int                    // and of all sessions
	fences  map[string]agent.Fence // of the last head that was stored, by session
	moved   chan struct{}          // closed, and replaced, when a write was made or all are let go
	opened  bool                   // all that is held back is let go
	hanging bool                   // the store says nothing
	writes  int                    // that came
	mishaps map[mishap]int
	late    map[string]int // late writes, by what the store said: made, or a code
	busy    int            // writes that are on their way
}

func newProxy(st store.Store, p *plan) *proxy {
	made := &proxy{
		store: st, plan: p, nth: map[string]int{}, made: map[string]int{}, fences: map[string]agent.Fence{}, moved: make(chan struct{}),
		mishaps: map[mishap]int{}, late: map[string]int{},
	}
	made.pick, made.freeze = made.choose, func(int) func() { return nil }
	return made
}

// mishap is what becomes of a write on its way.
type mishap string

const (
	mishapNone    mishap = ""
	mishapDropped mishap = "dropped"     // never made; the caller is told that the store can't be reached
	mishapUntold  mishap = "answer lost" // made; the caller is told that the store can't be reached
	mishapLate    mishap = "held back"   // the same, and made later, behind its successors
	mishapTwin    mishap = "late twin"   // made and answered, and made once more later
	mishapDoubled mishap = "doubled"     // made twice at once; the caller is told the second answer
	mishapSwapped mishap = "swapped"     // waits until another write was made
	mishapSlow    mishap = "slow"        // waits for seconds, in the call
	// The process is stopped in the call, until another one has gone on with the run.
	mishapFrozen mishap = "frozen"
)

// unruly says how often a mishap is chosen, of 100.
var unruly = []struct {
	mishap mishap
	n      int
}{
	{mishapDropped, 4}, {mishapUntold, 6}, {mishapLate, 9}, {mishapTwin, 9}, {mishapDoubled, 5}, {mishapSwapped, 5}, {mishapSlow, 3}, {mishapFrozen, 15},
}

const (
	// swapWithin is how long a write waits for another one to overtake it.
	swapWithin = time.Second
	// slowest is how long a slow write takes at most: longer than a step may be silent.
	slowest = 12 * time.Second
	// heldFor is how long a write is held back at most before the end.
	heldFor = 20 * time.Second
	// frozenFor is how long a process is stopped at most: others give its step up after
	// 10 s, and go on.
	frozenFor = 30 * time.Second
	// mostBehind is how many later writes of its session a late one may wait for. Those
	// that wait for more are let go at the very end.
	mostBehind = 4
)

// writeOp is a method of [store.Store] that changes something.
type writeOp string

const (
	putChunk    writeOp = "put chunk"
	deleteChunk writeOp = "delete chunk"
	putHead     writeOp = "put head"
	deleteHead  writeOp = "delete head"
)

// write is a call of one of them.
type write struct {
	Op      writeOp     `json:"op"`
	Name    string      `json:"name,omitempty"` // of a chunk
	Data    []byte      `json:"data,omitempty"`
	Before  time.Time   `json:"before,omitzero"`
	Head    *store.Head `json:"head,omitempty"`
	Session string      `json:"session,omitempty"` // whose head is deleted
	Version int64       `json:"version,omitempty"`
	PID     int         `json:"pid"` // whose write it is
}

// of says whose write it is, in the form in which names of chunks say it.
func (w *write) of() string {
	session := w.Session
	if w.Head != nil {
		session = w.Head.Session
	}
	if w.Name != "" {
		return w.Name[:min(len(w.Name), len(store.ChunkPrefix("")))]
	}
	return store.ChunkPrefix(session)
}

// between reports whether a head is neither the first of its session nor a run's end: the
// run goes on from it.
func (w *write) between() bool {
	return w.Op == putHead && w.Head.Version > 1 && !w.Head.Status.Ended()
}

// answer is what the store said to a write.
type answer struct {
	Gone    bool       `json:"gone,omitempty"`
	Code    agent.Code `json:"code,omitempty"` // empty: it is done
	Message string     `json:"message,omitempty"`
}

// unreachable is what a caller is told whose write or answer is on its way somewhere.
var unreachable = answer{Code: agent.CodeStoreUnavailable, Message: "chaos: the store did not answer"}

// ServeHTTP takes one write, or the question of one who wants to read.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		p.awake()
		return
	}
	var one write
	if err := json.NewDecoder(r.Body).Decode(&one); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	p.enter()
	defer p.leave()
	p.awake()
	a, thaw := p.take(&one)
	defer thaw()                     // when the answer has arrived: it is the first thing that the process hears
	_ = json.NewEncoder(w).Encode(a) // a caller that is gone is told nothing
	_ = http.NewResponseController(w).Flush()
}

// take lets a write have its mishap, and returns what its caller is told, and what is to
// be done when it was told.
func (p *proxy) take(w *write) (a answer, then func()) {
	m, later := p.pick(w)
	then = func() {}
	if m == mishapFrozen {
		if then = p.freezer()(w.PID); then == nil {
			m, then = mishapNone, func() {}
		}
	}
	p.count(m)
	switch m {
	case mishapDropped:
		return unreachable, then
	case mishapUntold:
		p.make(w)
		return unreachable, then
	case mishapLate:
		p.makeLater(w, later)
		return unreachable, then
	case mishapTwin:
		a := p.make(w)
		p.makeLater(w, later)
		return a, then
	case mishapFrozen:
		p.await(frozenFor, func() bool { return w.Head.Fence.Compare(p.fences[w.of()]) < 0 })
	case mishapDoubled:
		p.make(w)
	case mishapSwapped:
		p.await(swapWithin, func() bool { return p.total > later.total })
	case mishapSlow:
		p.await(later.slow, never)
	}
	return p.make(w), then
}

// enter notes that a write is on its way, until leave.
func (p *proxy) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy++
}

func (p *proxy) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
	p.move()
}

// hang lets the store say nothing until wake is called. It reports false where it hangs
// already.
func (p *proxy) hang() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	begins := !p.hanging
	p.hanging = true
	return begins
}

func (p *proxy) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hanging = false
	p.move()
}

// awake waits while the store hangs, also for a caller that is gone.
func (p *proxy) awake() {
	p.await(time.Hour, func() bool { return !p.hanging })
}

// move wakes all that waits for something. The caller has the lock.
func (p *proxy) move() {
	close(p.moved)
	p.moved = make(chan struct{})
}

func (p *proxy) freezer() func(pid int) (thaw func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.freeze
}

func (p *proxy) freezes(with func(pid int) (thaw func())) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.freeze = with
}

func (p *proxy) count(m mishap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	if m != mishapNone {
		p.mishaps[m]++
	}
}

func never() bool { return false }

// later says until when a write is held back.
type later struct {
	behind  int // how many writes of its session are to be made before it
	counted int // how many were made when it came
	total   int // and of all sessions
	slow    time.Duration
}

// choose throws the dice for a write. They are the same for the nth write of a kind
// to a session.
func (p *proxy) choose(w *write) (m mishap, l later) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calm.Load() {
		return mishapNone, l
	}
	place := string(w.Op) + " " + w.of()
	p.nth[place]++
	d := p.plan.dice("write", place, p.nth[place])
	n := d.IntN(100)
	for _, u := range unruly {
		if n -= u.n; n < 0 {
			m = u.mishap
			break
		}
	}
	if m == mishapFrozen && !w.between() {
		m = mishapNone
	}
	return m, later{behind: d.IntN(2 * mostBehind), counted: p.made[w.of()], total: p.total, slow: between(d, time.Second, slowest)}
}

// make makes a write. It has all its time: its caller may be gone.
func (p *proxy) make(w *write) answer {
	a := apply(context.Background(), p.store, w)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made[w.of()]++
	if w.Op == putHead && a.Code == "" {
		p.fences[w.of()] = w.Head.Fence
	}
	p.total++
	p.move()
	return a
}

// makeLater makes a write when its successors are made, or all is let go.
func (p *proxy) makeLater(w *write, l later) {
	patience, overtaken := heldFor, func() bool { return p.made[w.of()] >= l.counted+l.behind }
	switch {
	case l.behind == 0: // it meets the next attempt
		patience, overtaken = l.slow/6, never
	case l.behind > mostBehind:
		patience, overtaken = time.Hour, never
	}
	p.enter()
	go func() {
		defer p.leave()
		p.await(patience, overtaken)
		a := p.make(w)
		if a.Code == "" {
			a.Code = "made"
		}
		p.mu.Lock()
		p.late[string(w.Op)+" "+string(a.Code)]++
		p.mu.Unlock()
	}()
}

// await waits until something is so, all is let go, or the time is over.
func (p *proxy) await(within time.Duration, so func() bool) {
	over := time.After(within)
	for {
		p.mu.Lock()
		moved, done := p.moved, p.opened || so()
		p.mu.Unlock()
		if done {
			return
		}
		select {
		case <-moved:
		case <-over:
			return
		}
	}
}

// release lets all go that is held back, and returns when it is made.
func (p *proxy) release() {
	p.calm.Store(true)
	p.mu.Lock()
	p.opened = true
	p.move()
	p.mu.Unlock()
	p.idle()
}

// idle waits until no write is on its way.
func (p *proxy) idle() {
	for moved, busy := p.state(); busy > 0; moved, busy = p.state() {
		<-moved
	}
}

func (p *proxy) state() (moved chan struct{}, busy int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moved, p.busy
}

// tell reports what came, and what became of it.
func (p *proxy) tell(r *report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Writes, r.Mishaps, r.Late = p.writes, maps.Clone(p.mishaps), maps.Clone(p.late)
}

// apply hands a write to a store.
func apply(ctx context.Context, s store.Store, w *write) (a answer) {
	var err error
	switch w.Op {
	case putChunk:
		err = s.PutChunk(ctx, w.Name, w.Data)
	case deleteChunk:
		a.Gone, err = s.DeleteChunk(ctx, w.Name, w.Before)
	case putHead:
		err = s.PutHead(ctx, *w.Head)
	case deleteHead:
		err = s.DeleteHead(ctx, w.Session, w.Version)
	default:
		err = agent.Errorf(agent.CodeInvalidInput, "there is no write %q", w.Op)
	}
	if err != nil {
		a.Code, a.Message = agent.CodeOf(err), err.Error()
	}
	return a
}
