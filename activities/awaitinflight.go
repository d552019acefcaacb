package activities

import (
	"context"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/internal/durable"
)

// AwaitInFlight waits for a moment until no call of a session is in flight that an interrupt cancels,
// in any process. It runs as a local activity within the workflow task. When the task
// ends, the server adds the calls' results to the next one at once; without it, the run's
// next task would queue behind those of all its children.
var AwaitInFlight = durable.Activity[string, bool]{Name: "fermata.await_in_flight"}

// How long AwaitInFlight waits for this process's calls to end (inFlightTime), and for
// the server to know of the end of all (reportTime). Whoever interrupts waits as long for
// an answer. It asks the server after firstLook, and then less and less often.
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
	// If the calls of this process do not end soon, a tool ignores its context, and
	// waiting longer is useless.
	defer late()
	return d.InFlight.awaitNone(soon, session) && d.reported(ctx, session), nil
}

// reported waits until the server knows of no call of a session in flight. The server
// learns of an end with some delay, for instance when hundreds of calls end at once.
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
			return false // the results then come with a later task
		}
		if !slices.ContainsFunc(run.GetPendingActivities(), began) {
			return true
		}
	}
}

// began reports whether a worker has a pending call that an interrupt cancels. One that still
// waits for a worker is cancelled by the task that waits here, so it is not waited for. A seal
// continues, however slow the store is, and so does what waits for another workflow.
func began(p *workflowpb.PendingActivityInfo) bool {
	cancels := []string{CallModel.Name, CallTool.Name, AskFlow.Name}
	return p.GetState() != enums.PENDING_ACTIVITY_STATE_SCHEDULED && slices.Contains(cancels, p.GetActivityType().GetName())
}

// awaitNone waits until no activity of a session is in flight here, or the context ends.
// It reports the former.
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

// oneOf returns an activity of a session that is in flight; nil if there is none.
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
