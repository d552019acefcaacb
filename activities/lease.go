package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// Lease looks whether a run's parent is gone: its workflow is closed, or is
// another run's by now. Where nobody can tell, it is not.
var Lease = durable.Activity[agent.Parent, bool]{Name: "fermata.lease"}

func (d *Deeds) lease(ctx context.Context, p agent.Parent) (gone bool, err error) {
	description, err := d.Client.DescribeWorkflowExecution(ctx, p.Session, "")
	if err := durable.ArriveRPC(err); err != nil {
		return errors.Is(err, agent.NotFound), nil
	}
	info := description.GetWorkflowExecutionInfo()
	return info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING || info.GetFirstRunId() != p.Run, nil
}

// leaseEvery is how often a step looks for its run's parent.
const leaseEvery = 10 * time.Second

// watch ends a step's context when its run's parent is gone, and looks before the
// step begins. A run without a parent is not watched.
func (d *Deeds) watch(ctx context.Context, p *agent.Parent) (_ context.Context, stop func()) {
	if p == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	look := func() bool {
		gone, err := d.lease(ctx, *p)
		if gone && err == nil {
			cancel(&errHeld{agent.Heard{Session: p.Session, N: endless, Verb: agent.Cancel}})
		}
		return gone
	}
	if look() {
		return ctx, func() {}
	}
	go func() {
		tick := time.NewTicker(leaseEvery)
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

// endless is the number of a hold that no run has heard of: the end of its parent.
const endless = 1 << 30
