package activities

import (
	"context"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/internal/durable"
)

// AwaitInFlight waits, for a moment, until no model or tool call of a session is in flight any more,
// here or in another process. It runs within the workflow's task, whose end then brings the steps'
// results at once: a turn of their own would come behind those of all the runs below.
var AwaitInFlight = durable.Activity[string, bool]{Name: "fermata.await_in_flight"}

// How long Gather waits at most for this process's steps to end, and for the server to know
// of the end of all; who interrupts waits as long for an answer. In between it looks at the
// server, less and less often.
const (
	inFlightTime = 100 * time.Millisecond
	reportTime   = 500 * time.Millisecond
	firstLook    = 5 * time.Millisecond
	lastLook     = 50 * time.Millisecond
)

func (d *Activities) awaitInFlight(ctx context.Context, session string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	soon, late := context.WithTimeout(ctx, inFlightTime)
	defer late()
	return d.InFlight.awaitNone(soon, session) && d.reported(ctx, session), nil
}

// reported waits until the server has no step of a session in flight. It knows only some time
// after a step has ended: that of the root among hundreds that end at once.
func (d *Activities) reported(ctx context.Context, session string) bool {
	if d.Client == nil {
		return true
	}
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
		run, err := d.Client.DescribeWorkflowExecution(ctx, session, "")
		if err != nil {
			return false // the results come by a turn of their own
		}
		if !slices.ContainsFunc(run.GetPendingActivities(), began) {
			return true
		}
	}
}

// began reports whether a worker has a step that an interrupt gives up. One that waits for a
// worker is given up by the task that waits here; a seal goes on, however slow the store is.
func began(p *workflowpb.PendingActivityInfo) bool {
	name := p.GetActivityType().GetName()
	return p.GetState() == enums.PENDING_ACTIVITY_STATE_STARTED && (name == CallModel.Name || name == CallTool.Name)
}

// awaitNone waits until no step of a session is in flight, or the context ends.
func (f *InFlight) awaitNone(ctx context.Context, session string) bool {
	for {
		next := f.oneOf(session)
		if next == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-next.done:
		}
	}
}

// oneOf is a step of a session that is in flight; nil if none is.
func (f *InFlight) oneOf(session string) *activityInFlight {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.steps {
		if s.session == session {
			return s
		}
	}
	return nil
}
