package activities

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/live"
)

// InFlight knows which activities this process has in flight, and which holds it has
// received. An interrupt reaches the activities of a whole tree here at once, before any
// child's workflow knows of it (docs/decisions/0019). If the process loses a hold, the
// tree only loses time: the verb itself goes from run to run as a signal. It is safe for
// concurrent use.
type InFlight struct {
	mu    sync.Mutex
	steps map[*activityInFlight]struct{}
	holds *simplelru.LRU[string, heardHold] // the last hold of each session
	held  map[string]map[string]struct{}    // the sessions in holds, by root
	// Holds sends holds to other processes and receives theirs; nil if there are none.
	Holds live.Holds
	roots map[string]*followedTree // trees that have activities in flight here, by root
}

// followedTree is a tree whose holds this process receives.
type followedTree struct {
	steps int
	leave func()
}

type activityInFlight struct {
	session string
	heard   []agent.HoldRef
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when the activity has ended
}

// heardHold is a hold, and when this process heard of it.
type heardHold struct {
	agent.HoldRef
	at time.Time
}

// rememberFor is how long a hold is remembered for activities that begin later: about as long as its
// order to their runs may take. A session that was deleted and begins again must not meet it.
const rememberFor = 10 * time.Second

// maxHolds limits how many sessions' holds are remembered. A hold that is forgotten
// reaches its activities by the workflows alone.
const maxHolds = 10_000

// NewInFlight returns an empty registry; one serves a whole process.
func NewInFlight() *InFlight {
	f := &InFlight{steps: map[*activityInFlight]struct{}{}, held: map[string]map[string]struct{}{}, roots: map[string]*followedTree{}}
	f.holds, _ = simplelru.NewLRU(maxHolds, func(session string, _ heardHold) { // it returns no error
		root := rootOf(session)
		if delete(f.held[root], session); len(f.held[root]) == 0 {
			delete(f.held, root)
		}
	})
	return f
}

func rootOf(session string) string {
	root, _, _ := strings.Cut(session, "/")
	return root
}

// errHeld is the cause of a context's end if its run, or an ancestor, is held.
type errHeld struct{ agent.HoldRef }

func (e *errHeld) Error() string { return "session " + e.Session + " is held" }

// Broadcast cancels what this process has in flight of a session and its descendants, and
// sends the hold to other processes.
func (f *InFlight) Broadcast(h agent.HoldRef) {
	f.forgetHigher(h)
	f.Cancel(h)
	if f.Holds != nil {
		h.By = "" // the parent's order says it, and nobody else can
		f.Holds.Publish(h)
	}
}

// forgetHigher forgets a hold of the same session with a higher number: the session itself has just given
// this one, so the other is forged.
func (f *InFlight) forgetHigher(h agent.HoldRef) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.remembered(h.Session).N >= h.N {
		f.holds.Remove(h.Session)
	}
}

// Cancel cancels what this process has in flight of a session and its descendants. An
// activity whose run already knows the hold continues.
func (f *InFlight) Cancel(h agent.HoldRef) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Remembered for activities that begin later, whose runs do not know the hold yet. An
	// implausible number is not remembered: a forged high one would hide every real hold
	// after it.
	if last := f.remembered(h.Session); last.N < h.N && wire.PlausibleHold(h, last.N) {
		f.remember(h)
	}
	for s := range f.steps {
		if under(s.session, h.Session) && news(s.heard, h) {
			s.cancel(&errHeld{h})
		}
	}
}

// maxSessionBytes is more than Temporal allows for a workflow's id.
const maxSessionBytes = 1000

// Told cancels as Cancel does, for a hold of which another process or a broker tells. Others may be
// able to do so, too: every verb is taken for an interrupt, and nobody is named. A run that was
// interrupted in error asks its parent, and continues if nobody holds it; an end could not be undone.
func (f *InFlight) Told(h agent.HoldRef) {
	if len(h.Session) <= maxSessionBytes {
		f.Cancel(agent.HoldRef{Session: h.Session, N: h.N, Verb: agent.VerbInterrupt, Grace: h.Grace})
	}
}

// remembered returns the last hold of a session; the zero value if there is none, or none of late.
func (f *InFlight) remembered(session string) agent.HoldRef {
	h, ok := f.holds.Get(session)
	if ok && time.Since(h.at) > rememberFor {
		f.holds.Remove(session)
		return agent.HoldRef{}
	}
	return h.HoldRef
}

// remember keeps a hold for activities that begin later. A cancel is kept as an interrupt, since an end
// could not be undone.
func (f *InFlight) remember(h agent.HoldRef) {
	root := rootOf(h.Session)
	if f.held[root] == nil {
		f.held[root] = map[string]struct{}{}
	}
	f.held[root][h.Session] = struct{}{}
	h.Verb, h.By = agent.VerbInterrupt, ""
	f.holds.Add(h.Session, heardHold{h, time.Now()})
}

// Forget drops what is remembered of the holds of a tree. A session that was deleted and begins again
// counts its holds from one.
func (f *InFlight) Forget(root string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for session := range maps.Clone(f.held[root]) {
		f.holds.Remove(session)
	}
}

// CancelSession cancels what this process has in flight of a session, but not of its
// descendants. Its run wants no result any more. Other processes learn it from the
// server.
func (f *InFlight) CancelSession(session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.steps {
		if s.session == session {
			s.cancel(context.Canceled)
		}
	}
}

// follow subscribes to the holds of a session's tree, until the tree's last activity
// leaves.
func (f *InFlight) follow(session string) (leave func()) {
	if f.Holds == nil {
		return func() {}
	}
	root := rootOf(session)
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.roots[root]
	if one == nil {
		// In a goroutine: Cancel takes the lock, which follow holds if Holds calls back
		// at once.
		one = &followedTree{leave: f.Holds.Follow(root, func(h agent.HoldRef) { go f.Told(h) })}
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

// under reports whether a session is above or a descendant of above.
func under(session, above string) bool {
	return session == above || strings.HasPrefix(session, above+"/")
}

// news reports whether a hold is newer than those that an activity's run knows, and
// plausible.
func news(heard []agent.HoldRef, h agent.HoldRef) bool {
	n := lastOf(heard, h.Session)
	return h.N > n && wire.PlausibleHold(h, n)
}

// lastOf returns the number of the last hold of a session among those that are known.
func lastOf(heard []agent.HoldRef, session string) (n int) {
	for _, k := range heard {
		if k.Session == session {
			n = max(n, k.N)
		}
	}
	return n
}

// enter registers an activity whose run knows some holds. The context ends when a newer
// hold arrives. If one has arrived already, the context is ended at once, and the
// activity must not begin.
func (f *InFlight) enter(ctx context.Context, session string, heard []agent.HoldRef) (_ context.Context, leave func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unfollow := f.follow(session)
	// One lock for the check and the registration: a hold that arrives in between would
	// miss the activity.
	f.mu.Lock()
	defer f.mu.Unlock()
	for above := session; ; above = above[:strings.LastIndexByte(above, '/')] {
		if h := f.remembered(above); news(heard, h) {
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

// heldBy returns the hold that ended a context; nil if something else ended it, or it has
// not ended.
func heldBy(ctx context.Context) *agent.HoldRef {
	var held *errHeld
	if errors.As(context.Cause(ctx), &held) {
		return &held.HoldRef
	}
	return nil
}

// begin returns a context that ends when a hold arrives that the run does not know, or
// when the run's parent is gone.
func (d *Activities) begin(ctx context.Context, session string, heard []agent.HoldRef, parent *wire.Parent) (context.Context, func()) {
	ctx, leave := d.InFlight.enter(ctx, session, heard)
	ctx, stop := d.watch(ctx, parent, heard)
	return ctx, func() { stop(); leave() }
}
