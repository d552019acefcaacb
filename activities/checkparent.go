package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.temporal.io/api/enums/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/wire"
)

// CheckParent looks whether a run is gone: its workflow is closed, or is another run's by
// now. It tells at which end; nothing where the run lives, or nobody can tell.
var CheckParent = durable.Activity[wire.Parent, agent.Status]{Name: "fermata.check_parent"}

func (d *Activities) checkParent(ctx context.Context, p wire.Parent) (agent.Status, error) {
	end, err := d.closedStatus(ctx, p)
	if err != nil {
		return "", nil
	}
	return end, nil
}

// closedStatus tells at which end a run is; nothing where it lives.
func (d *Activities) closedStatus(ctx context.Context, p wire.Parent) (end agent.Status, err error) {
	description, err := d.Client.DescribeWorkflowExecution(ctx, p.Session, "")
	if err := durable.FromRPC(err); err != nil {
		if errors.Is(err, agent.CodeNotFound) {
			return agent.StatusCancelled, nil
		}
		return "", err
	}
	info := description.GetWorkflowExecutionInfo()
	switch status := info.GetStatus(); {
	case status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING && info.GetFirstRunId() == p.Run:
		return "", nil
	case info.GetFirstRunId() != p.Run, status == enums.WORKFLOW_EXECUTION_STATUS_CANCELED, status == enums.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return agent.StatusCancelled, nil
	case status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return agent.StatusCompleted, nil
	}
	return agent.StatusFailed, nil
}

// ParentChecks are what this process knows of the parents of runs that work here: all children
// of a parent share one look at it. It is safe for concurrent use.
type ParentChecks struct {
	mu    sync.Mutex
	known *simplelru.LRU[wire.Parent, *parentCheck]
}

// parentCheck is what the last look at a parent found.
type parentCheck struct {
	looking chan struct{} // held by who looks
	at      time.Time
	end     agent.Status
}

const (
	// parentCheckAge is how long a look at a parent is good for: how long what a terminated
	// run left in the background may go on.
	parentCheckAge = time.Minute
	// parentCheckInterval is how often a step asks whether its run's parent is known to be gone.
	parentCheckInterval = 10 * time.Second
	// maxParentChecks bounds how many parents are remembered.
	maxParentChecks = 10_000
)

// NewParentChecks returns leases of which nothing is known; one serves a whole process.
func NewParentChecks() *ParentChecks {
	lru, _ := simplelru.NewLRU[wire.Parent, *parentCheck](maxParentChecks, nil)
	return &ParentChecks{known: lru}
}

// parentGone reports whether a parent is gone. It looks if nobody in this process has within the
// last minute. Where nobody can tell, the next one looks again.
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
	if one.end == "" && (one.at.IsZero() || time.Since(one.at) >= parentCheckAge) {
		end, err := look(ctx, p)
		if err != nil {
			return false
		}
		one.at, one.end = time.Now(), end
	}
	return one.end != ""
}

// watch ends a step's context when its run's parent is gone, and looks before the step
// begins. Only a run that its parent started in the background has one to look at: the
// server cancels those that the parent waits for, and such a one looks while it rests. The end is told as the hold that follows
// those that the step knows of.
func (d *Activities) watch(ctx context.Context, p *wire.Parent, heard []agent.HoldRef) (_ context.Context, stop func()) {
	if p == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	look := func() bool {
		gone := d.ParentChecks.parentGone(ctx, *p, d.closedStatus)
		if gone {
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
