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

// proxy is between the processes and their store. A write may be dropped, delayed beyond
// its answer, doubled or reordered, and outlives its process. The proxy never says that a
// write is stored before it is. Reads only wait for the proxy while the store hangs.
type proxy struct {
	store store.Store
	pick  func(*write) (mishap, later)
	plan  *plan
	calm  atomic.Bool // writes pass without mishaps

	mu sync.Mutex
	// freeze stops the process that makes a write, and returns what lets it continue; nil
	// if that is not possible now.
	freeze  func(pid int) (thaw func())
	nth     map[string]int         // writes that arrived, by kind and session
	made    map[string]int         // writes that were stored, by session
	total   int                    // and of all sessions
	fences  map[string]agent.Fence // the fence of the last stored head, by session
	moved   chan struct{}          // closed and replaced when something may have changed
	opened  bool                   // everything that was held back is released
	hanging bool                   // the store does not answer
	writes  int                    // writes that arrived
	mishaps map[mishap]int
	late    map[string]int // late writes, by the store's answer: made, or a code
	busy    int            // writes in progress
}

func newProxy(st store.Store, p *plan) *proxy {
	made := &proxy{
		store: st, plan: p, nth: map[string]int{}, made: map[string]int{}, fences: map[string]agent.Fence{}, moved: make(chan struct{}),
		mishaps: map[mishap]int{}, late: map[string]int{},
	}
	made.pick, made.freeze = made.choose, func(int) func() { return nil }
	return made
}

// mishap is what happens to a write on its way.
type mishap string

const (
	mishapNone    mishap = ""
	mishapDropped mishap = "dropped"     // never stored; the caller learns that the store is unreachable
	mishapUntold  mishap = "answer lost" // stored; the caller learns that the store is unreachable
	mishapLate    mishap = "held back"   // the same, but stored later, after its successors
	mishapTwin    mishap = "late twin"   // stored and answered, and stored again later
	mishapDoubled mishap = "doubled"     // stored twice at once; the caller gets the second answer
	mishapSwapped mishap = "swapped"     // waits until another write was stored
	mishapSlow    mishap = "slow"        // waits for seconds, in the call
	// The process is stopped in the call, until another one has continued the run.
	mishapFrozen mishap = "frozen"
)

// unruly says how often a mishap is chosen, out of 100.
var unruly = []struct {
	mishap mishap
	n      int
}{
	{mishapDropped, 4}, {mishapUntold, 6}, {mishapLate, 9}, {mishapTwin, 9}, {mishapDoubled, 5}, {mishapSwapped, 5}, {mishapSlow, 3}, {mishapFrozen, 15},
}

const (
	// swapWithin is how long a write waits for another one to overtake it.
	swapWithin = time.Second
	// slowest is how long a slow write takes at most: longer than an activity may be
	// silent.
	slowest = 12 * time.Second
	// heldFor is how long a write is held back at most before the end.
	heldFor = 20 * time.Second
	// frozenFor is how long a process is stopped at most. Others retry its activity after
	// 10 s.
	frozenFor = 30 * time.Second
	// mostBehind is how many later writes of its session a late one may wait for. Those
	// that wait for more are released at the very end.
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

// write is a call of such a method.
type write struct {
	Op      writeOp     `json:"op"`
	Name    string      `json:"name,omitempty"` // of a chunk
	Data    []byte      `json:"data,omitempty"`
	Before  time.Time   `json:"before,omitzero"`
	Head    *store.Head `json:"head,omitempty"`
	Session string      `json:"session,omitempty"` // of the head that is deleted
	Version int64       `json:"version,omitempty"`
	PID     int         `json:"pid"` // of the process that writes
}

// of returns whose write it is, in the form of chunk names.
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

// between reports whether a head is neither the first of its session nor a run's end.
// Then the run continues from it.
func (w *write) between() bool {
	return w.Op == putHead && w.Head.Version > 1 && !w.Head.Status.Ended()
}

// answer is the store's answer to a write.
type answer struct {
	Gone    bool       `json:"gone,omitempty"`
	Code    agent.Code `json:"code,omitempty"` // empty if it is done
	Message string     `json:"message,omitempty"`
}

// unreachable is the answer for a write that is delayed or dropped.
var unreachable = answer{Code: agent.CodeStoreUnavailable, Message: "chaos: the store did not answer"}

// ServeHTTP takes one write, or lets a reader wait.
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
	// After the answer: it is the first thing that the thawed process reads.
	a, thaw := p.take(&one)
	defer thaw()
	_ = json.NewEncoder(w).Encode(a) // the caller may be gone
	_ = http.NewResponseController(w).Flush()
}

// take gives a write its mishap. It returns the caller's answer, and what to do after it
// was sent.
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

// enter counts a write in progress, until leave.
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

// hang lets the store not answer until wake is called. It reports false if it hangs
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

// move wakes everything that waits. The caller holds the lock.
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

// later says how long a write is held back.
type later struct {
	behind  int // how many writes of its session are stored before it
	counted int // how many were stored when it arrived
	total   int // the same of all sessions
	slow    time.Duration
}

// choose throws the dice for a write. They are the same for the nth write of a kind to a
// session.
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

// make stores a write. It ignores the caller's context: the caller may be gone.
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

// makeLater stores a write when its successors are stored, or everything is released.
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

// await waits until a condition holds, everything is released, or the time is over.
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

// release releases everything that is held back, and returns when it is stored.
func (p *proxy) release() {
	p.calm.Store(true)
	p.mu.Lock()
	p.opened = true
	p.move()
	p.mu.Unlock()
	p.idle()
}

// idle waits until no write is in progress.
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

// tell reports the writes, and what happened to them.
func (p *proxy) tell(r *report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Writes, r.Mishaps, r.Late = p.writes, maps.Clone(p.mishaps), maps.Clone(p.late)
}

// apply passes a write to a store.
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
