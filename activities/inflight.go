package activities

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/live"
)

// InFlight knows which steps this process has in flight, and which holds it has
// heard of, so that an interrupt reaches a whole tree here at once: before any
// workflow below the one that was held knows of it (design §3, the first of two
// layers). What is lost with the process is only time: the verb itself goes from
// run to run.
type InFlight struct {
	mu    sync.Mutex
	steps map[*activityInFlight]struct{}
	holds *simplelru.LRU[string, agent.HoldRef] // the last hold, by the session that was held
	// Holds tells other processes of a hold, and hears of theirs; nil if there are
	// none.
	Holds live.Holds
	roots map[string]*followedTree // of the trees that have steps in flight here
}

// followedTree is a tree of which holds are heard.
type followedTree struct {
	steps int
	leave func()
}

type activityInFlight struct {
	session string
	heard   []agent.HoldRef
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when the step has ended
}

// maxHolds bounds how many sessions' holds are remembered. One that is forgotten
// reaches its steps by the workflows alone.
const maxHolds = 10_000

// NewInFlight returns an empty registry; one serves a whole process.
func NewInFlight() *InFlight {
	lru, _ := simplelru.NewLRU[string, agent.HoldRef](maxHolds, nil)
	return &InFlight{steps: map[*activityInFlight]struct{}{}, holds: lru, roots: map[string]*followedTree{}}
}

// errHeld is why a step's context ends when its run, or one above it, is held.
type errHeld struct{ agent.HoldRef }

func (e *errHeld) Error() string { return "session " + e.Session + " is held" }

// Broadcast gives up what this process has in flight of a session and of all below
// it, and tells the others.
func (f *InFlight) Broadcast(h agent.HoldRef) {
	f.Cancel(h)
	if f.Holds != nil {
		f.Holds.Publish(h)
	}
}

// Cancel gives up what this process has in flight of a session and of all below it.
func (f *InFlight) Cancel(h agent.HoldRef) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last, _ := f.holds.Get(h.Session); last.N < h.N && wire.PlausibleHold(h, last.N) {
		f.holds.Add(h.Session, h)
	}
	for s := range f.steps {
		if under(s.session, h.Session) && news(s.heard, h) {
			s.cancel(&errHeld{h})
		}
	}
}

// asInterrupt is a hold of which only a broker tells, to which others may be able to write: an
// end counts as an interrupt. A run that is interrupted hears from the run above it that it
// is at an end, or that nobody holds it.
func asInterrupt(h agent.HoldRef) agent.HoldRef {
	if h.Verb == agent.VerbCancel {
		h.Verb = agent.VerbInterrupt
	}
	return h
}

// CancelSession gives up what this process has in flight of a session, and of none below it: its
// run wants nothing of it any more. Other processes hear it from the server.
func (f *InFlight) CancelSession(session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.steps {
		if s.session == session {
			s.cancel(context.Canceled)
		}
	}
}

// follow hears of holds of a step's tree from other processes, until the last step of it
// leaves.
func (f *InFlight) follow(session string) (leave func()) {
	if f.Holds == nil {
		return func() {}
	}
	root, _, _ := strings.Cut(session, "/")
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.roots[root]
	if one == nil {
		one = &followedTree{leave: f.Holds.Follow(root, func(h agent.HoldRef) { go f.Cancel(asInterrupt(h)) })}
		f.roots[root] = one
	}
	one.steps++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if one.steps--; one.steps == 0 {
			delete(f.roots, root)
			one.leave()
		}
	}
}

// under reports whether a session is another or one below it.
func under(session, above string) bool {
	return session == above || strings.HasPrefix(session, above+"/")
}

// news reports whether a hold is a later one than those that a step knows of, and can be.
func news(heard []agent.HoldRef, h agent.HoldRef) bool {
	n := lastOf(heard, h.Session)
	return h.N > n && wire.PlausibleHold(h, n)
}

// lastOf is the number of the last hold of a session that a step knows of.
func lastOf(heard []agent.HoldRef, session string) (n int) {
	for _, k := range heard {
		if k.Session == session {
			n = max(n, k.N)
		}
	}
	return n
}

// enter registers a step that knows of some holds. Its context ends when a newer
// one comes, or has ended already: then the step is not to be begun.
func (f *InFlight) enter(ctx context.Context, session string, heard []agent.HoldRef) (_ context.Context, leave func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unfollow := f.follow(session)
	f.mu.Lock()
	defer f.mu.Unlock()
	for above := session; ; above = above[:strings.LastIndexByte(above, '/')] {
		if h, ok := f.holds.Get(above); ok && news(heard, h) {
			cancel(&errHeld{h})
			return ctx, unfollow
		}
		if !strings.Contains(above, "/") {
			break
		}
	}
	s := &activityInFlight{session, heard, cancel, make(chan struct{})}
	f.steps[s] = struct{}{}
	return ctx, func() {
		f.mu.Lock()
		delete(f.steps, s)
		f.mu.Unlock()
		close(s.done)
		cancel(nil)
		unfollow()
	}
}

// heldBy is the hold that ended a context; nil if something else did, or nothing.
func heldBy(ctx context.Context) *agent.HoldRef {
	var held *errHeld
	if errors.As(context.Cause(ctx), &held) {
		return &held.HoldRef
	}
	return nil
}

// begin begins a step: its context ends when a hold comes that its run does not
// know of, or when its run's parent is gone.
func (d *Activities) begin(ctx context.Context, session string, heard []agent.HoldRef, parent *wire.Parent) (context.Context, func()) {
	ctx, leave := d.InFlight.enter(ctx, session, heard)
	ctx, stop := d.watch(ctx, parent, heard)
	return ctx, func() { stop(); leave() }
}
