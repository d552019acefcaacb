package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/wire"
)

// CheckParent returns how a run has ended: its workflow is closed, or the session belongs
// to another run by now. It returns the empty status if the run is running, or if the
// answer is unknown.
var CheckParent = durable.Activity[wire.Parent, agent.Status]{Name: "fermata.check_parent"}

func (d *Activities) checkParent(ctx context.Context, p wire.Parent) (agent.Status, error) {
	end, err := d.closedStatus(ctx, p)
	if err != nil { // unknown: the run asks again later
		return "", nil
	}
	return end, nil
}

// closedStatus returns how a run has ended; empty if it is running.
func (d *Activities) closedStatus(ctx context.Context, p wire.Parent) (end agent.Status, err error) {
	description, err := d.Client.DescribeWorkflowExecution(ctx, p.Session, "")
	if err := durable.FromRPC(err); err != nil {
		if errors.Is(err, agent.CodeNotFound) {
			return agent.StatusCancelled, nil
		}
		return "", err
	}
	info := description.GetWorkflowExecutionInfo()
	if info.GetFirstRunId() != p.Run {
		return agent.StatusCancelled, nil
	}
	return durable.ClosedStatus(info), nil
}

// ParentChecks cache the last check of each parent whose children work in this process.
// All children of a parent share it. It is safe for concurrent use.
type ParentChecks struct {
	mu    sync.Mutex
	known *simplelru.LRU[wire.Parent, *parentCheck]
}

// parentCheck is the result of the last check of a parent.
type parentCheck struct { // a lock: its holder checks, the others wait
	looking chan struct{} // held by who looks
	at      time.Time
	end     agent.Status
}

const (
	// parentCheckAge is how long a check is valid: after the parent was terminated, its
	// background children may work so much longer.
	parentCheckAge = time.Minute
	// parentCheckInterval is how often an activity asks whether its run's parent is known
	// to be gone.
	parentCheckInterval = 10 * time.Second
	// maxParentChecks limits how many parents are remembered.
	maxParentChecks = 10_000
)

// NewParentChecks returns an empty cache; one serves a whole process.
func NewParentChecks() *ParentChecks {
	lru, _ := simplelru.NewLRU[wire.Parent, *parentCheck](maxParentChecks, nil)
	return &ParentChecks{known: lru}
}

// parentGone reports whether a parent is gone. It asks the server if nobody in this
// process has within the last minute. If the answer is unknown it returns false, and the
// next caller asks again.
func (l *ParentChecks) parentGone(ctx context.Context, p wire.Parent, look func(context.Context, wire.Parent) (agent.Status, error)) bool {
	p.Call = "" // all children of a run have one parent
	l.mu.Lock()
	one, ok := l.known.Get(p)
	if !ok {
		one = &parentCheck{looking: make(chan struct{}, 1)}
		l.known.Add(p, one)
	}
	l.mu.Unlock()
	select {
	case one.looking <- struct{}{}:
		defer func() { <-one.looking }()
	case <-ctx.Done():
		return false
	}
	// An end is final and never asked for again.
	if one.end == "" && (one.at.IsZero() || time.Since(one.at) >= parentCheckAge) {
		end, err := look(ctx, p)
		if err != nil {
			return false
		}
		one.at, one.end = time.Now(), end
	}
	return one.end != ""
}

// watch ends the context when the run's parent is gone. It checks before the activity
// begins, and then at intervals. Only a background child has a parent to check: the
// server cancels the others with their parent. The end is passed as a cancel by the
// parent's session, with the number after the last hold that the run knows.
func (d *Activities) watch(ctx context.Context, p *wire.Parent, heard []agent.HoldRef) (_ context.Context, stop func()) {
	if p == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	look := func() bool {
		gone := d.ParentChecks.parentGone(ctx, *p, d.closedStatus)
		if gone {
			// Numbered after the known holds, or the run would take it for one that it
			// has met before.
			cancel(&errHeld{agent.HoldRef{Session: p.Session, N: lastOf(heard, p.Session) + 1, Verb: agent.VerbCancel}})
		}
		return gone
	}
	if look() {
		return ctx, func() {}
	}
	go func() {
		tick := time.NewTicker(parentCheckInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				look()
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}
