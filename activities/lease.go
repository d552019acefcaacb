package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// Lease looks whether a run is gone: its workflow is closed, or is another run's by
// now. It tells at which end; nothing where the run lives, or nobody can tell.
var Lease = durable.Activity[agent.Parent, agent.Status]{Name: "fermata.lease"}

func (d *Deeds) lease(ctx context.Context, p agent.Parent) (end agent.Status, err error) {
	description, err := d.Client.DescribeWorkflowExecution(ctx, p.Session, "")
	if err := durable.ArriveRPC(err); err != nil {
		if errors.Is(err, agent.NotFound) {
			return agent.Cancelled, nil
		}
		return "", nil
	}
	info := description.GetWorkflowExecutionInfo()
	switch status := info.GetStatus(); {
	case status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING && info.GetFirstRunId() == p.Run:
		return "", nil
	case info.GetFirstRunId() != p.Run, status == enums.WORKFLOW_EXECUTION_STATUS_CANCELED, status == enums.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return agent.Cancelled, nil
	case status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return agent.Completed, nil
	}
	return agent.Failed, nil
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
		end, err := d.lease(ctx, *p)
		gone := end != "" && err == nil
		if gone {
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
