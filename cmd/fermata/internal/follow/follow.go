package follow

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/await"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/console"
	"github.com/fermata-agents/fermata/live"
)

// Listener receives what a run does. One goroutine uses it.
type Listener interface {
	// Event receives what is recorded, in order.
	Event(agent.Event)
	// Live receives what is not recorded: pieces of replies and progress of tools.
	Live(live.Event)
	// Waiting reports whether the listener holds something back that Flush would write.
	Waiting() bool
	Flush()
	Note(format string, args ...any)
}

const (
	// holdFor is how long the end of a call may wait for the call's result.
	holdFor = 250 * time.Millisecond
	// lastEvents is how long the last events may take after the run has ended.
	lastEvents = 3 * time.Second
	// workerBeginTime is how soon a worker begins with a run, if there is one.
	workerBeginTime = 3 * time.Second
	// LookAgain is the pause before following is tried again.
	LookAgain = time.Second
	// lookBelow is how often requests of sub-agents are looked for.
	lookBelow = time.Second
)

// Why following ended before the run did.
var (
	ErrNoWorker = errors.New("no worker takes the run")
	ErrChanged  = errors.New("something happened in the run")
	ErrAsked    = errors.New("a run below asks for something")
	ErrTyped    = errors.New("something was typed")
)

// State is how far a run was shown, if it is followed more than once.
type State struct {
	Seq     int64           // the last event
	below   map[string]bool // sub-agents that have not ended
	Resumes int             // how often the run's own hold was removed
}

func (h *State) event(e agent.Event) {
	h.Seq = e.Seq
	switch {
	case e.Type == agent.EventHoldRemoved && e.Hold != nil && e.Hold.From == agent.HoldOwn:
		h.Resumes++
	case e.Child == nil:
	case e.Type == agent.EventChildEnded:
		delete(h.below, e.Child.Session)
	default:
		if h.below == nil {
			h.below = map[string]bool{}
		}
		h.below[e.Child.Session] = true
	}
}

// Until says when following ends before the run does.
type Until struct {
	// Rest ends it when the run is suspended.
	Rest bool
	// After, if not zero, ends it with the first event after this one.
	After int64
	// Pressed ends it at Ctrl-C.
	Pressed <-chan struct{}
	// Typed ends it at a line that nobody asked for.
	Typed <-chan struct{}
	// Below lists the open requests of sub-agents; it is called now and then while there
	// are any. Following ends if Fresh reports that something in the list is new.
	Below func(context.Context) []agent.Request
	Fresh func([]agent.Request) bool
}

// follower follows one run to its end.
type follower struct {
	run         *fermata.Run
	to          Listener
	live        *live.Subscription
	workerBegan func() bool // whether some worker has started the run
	state       *State
	until       Until

	events  chan agent.Event
	trouble chan error // why the run can't be read at the moment
	results chan result
	asked   chan []agent.Request // requests of sub-agents
	looking bool
}

type result struct {
	outcome *agent.Outcome
	err     error
}

// Follow shows a run from the event after h on, and returns how it ended or was
// suspended.
func Follow(ctx context.Context, run *fermata.Run, h *State, pieces *live.Subscription, to Listener, taken func() bool, u Until) (*agent.Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &follower{
		run: run, to: to, live: pieces, workerBegan: taken, state: h, until: u,
		// Results and asked have room for one, so their goroutines end even if nobody reads.
		events: make(chan agent.Event), trouble: make(chan error), results: make(chan result, 1), asked: make(chan []agent.Request, 1),
	}
	go f.read(ctx, h.Seq)
	go func() {
		wait := run.Result
		if u.Rest {
			wait = run.Wait
		}
		o, err := wait(ctx)
		f.results <- result{o, err}
	}()
	return f.loop(ctx)
}

// read reads the run's events until its end. It starts again if a worker or the server was away.
func (f *follower) read(ctx context.Context, seq int64) {
	defer close(f.events)
	// From the session's beginning, events of earlier runs come first.
	ours := seq > 0
	for {
		failed := false
		for e, err := range f.run.Follow(ctx, agent.Cursor(seq)) {
			if err != nil {
				failed = send(ctx, f.trouble, err)
				break
			}
			// After a failure, continue behind the last event that was read.
			seq = e.Seq
			if e.Started != nil {
				ours = e.Started.Run == f.run.ID
			}
			if ours && !send(ctx, f.events, e.Event) {
				return
			}
		}
		if !failed || !await.Pause(ctx, LookAgain) {
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

// loop shows events until the run has ended or is suspended. The result may come before the
// last events, so these get some time. A failure to read is noted once, until an event shows
// that reading works again. The channels late and held are nil, which never receives, until
// they are needed.
func (f *follower) loop(ctx context.Context) (*agent.Outcome, error) {
	var end *result
	var late, held <-chan time.Time
	noted := false
	untaken := time.After(workerBeginTime)
	look := time.NewTicker(lookBelow)
	defer look.Stop()
	events := f.events
	for !f.done(end, events) {
		select {
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			noted = false
			if f.showEvent(e) {
				return nil, ErrChanged
			}
			if held = nil; f.to.Waiting() {
				held = time.After(holdFor)
			}
		case err := <-f.trouble:
			if !noted && end == nil {
				noted = true
				f.to.Note("%s: %v", FollowError(err), err)
			}
		case <-untaken:
			if f.state.Seq == 0 && end == nil && !f.workerBegan() {
				return nil, ErrNoWorker
			}
		case <-f.live.Ready():
			f.showLive()
		case <-held:
			f.to.Flush()
			held = nil
		case <-look.C:
			f.look(ctx)
		case found := <-f.asked:
			if f.looking = false; f.until.Fresh(found) {
				return nil, ErrAsked
			}
		case r := <-f.results:
			end, late = &r, time.After(lastEvents)
			if r.err != nil {
				return nil, r.err
			}
		case <-late:
			events = nil
		case <-f.until.Pressed:
			return nil, console.ErrInterrupted
		case <-f.until.Typed:
			return nil, ErrTyped
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	f.to.Flush()
	return end.outcome, nil
}

// done reports whether the run has ended or is suspended, and everything before that was
// shown.
func (f *follower) done(end *result, events <-chan agent.Event) bool {
	return end != nil && (events == nil || end.outcome.Status == agent.StatusSuspended && f.state.Seq >= end.outcome.Seq)
}

// showEvent shows an event, and reports whether it ends the following.
func (f *follower) showEvent(e agent.Event) bool {
	// Live pieces first: progress of a quick call would come after the call's end.
	f.showLive()
	f.state.event(e)
	f.to.Event(e)
	return f.until.After > 0 && e.Seq > f.until.After
}

// look looks for requests of sub-agents.
// One look at a time: a slow listing must not pile up.
func (f *follower) look(ctx context.Context) {
	if f.until.Below == nil || f.looking || len(f.state.below) == 0 {
		return
	}
	f.looking = true
	// Room for one in asked, so this ends even after Follow has returned.
	go func() { f.asked <- f.until.Below(ctx) }()
}

// showLive shows the live pieces of this run. The session may have another run by now.
func (f *follower) showLive() {
	for _, l := range f.live.Take() {
		if l.Run == f.run.ID {
			f.to.Live(l)
		}
	}
}

// FollowError says that a run can't be followed. What the store has lost may end the run,
// too.
func FollowError(err error) string {
	switch agent.CodeOf(err) {
	case agent.CodeChunkDamaged, agent.CodeChunkMissing:
		return "the run's log can't be read"
	}
	return "the run can't be followed at the moment, but it continues"
}
