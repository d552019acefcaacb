package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/store"
)

// putHead stores a head that a run has decided, and returns it as it is stored. A lower fence is refused forever, except for one case: an execution that was reset counts
// anew from where it was reset to, so that it comes after what it is about to replace.
func (d *Activities) putHead(ctx context.Context, h store.Head) (store.Head, error) {
	stored, err := d.Log.PutHead(ctx, h)
	if errors.Is(err, agent.CodeStale) {
		return d.overtake(ctx, h, err)
	}
	return stored, err
}

// swapHead stores a head that was made from the stored one. If that has moved meanwhile,
// as by a late write of a run before, a later attempt looks again.
func (d *Activities) swapHead(ctx context.Context, h store.Head) (store.Head, error) {
	stored, err := d.Log.SwapHead(ctx, h)
	if errors.Is(err, agent.CodeStale) {
		again := durable.Within("start", err)
		again.Retryable = true
		return stored, again
	}
	return stored, err
}

// overtake begins a new chain for a step whose fence was refused, if the stored head is
// of the same run, and Temporal waits for this very attempt. It asks after it has read
// the head, and stores over nothing but what it read: whatever overtakes it between has
// moved the head.
func (d *Activities) overtake(ctx context.Context, h store.Head, refused error) (stored store.Head, err error) {
	for errors.Is(refused, agent.CodeStale) {
		stored, err = d.Log.Head(ctx, h.Session)
		switch {
		case errors.Is(err, agent.CodeNotFound) || err == nil && stored.Run != h.Run:
			return store.Head{}, refused
		case err != nil:
			return store.Head{}, err
		case stored.Fence.N == h.Fence.N && stored.Fence.By == h.Fence.By: // an attempt of this step did it
			return stored, nil
		}
		current, err := d.current(ctx)
		if err != nil {
			return store.Head{}, err
		}
		if !current {
			return store.Head{}, refused
		}
		if _, err := d.Log.Backlog(ctx, h); err != nil {
			return store.Head{}, asResend(err)
		}
		h.Fence.Chain, h.Version = stored.Fence.Chain+1, stored.Version+1
		if stored, refused = d.Log.SwapHead(ctx, h); refused == nil {
			return stored, nil
		}
	}
	return store.Head{}, refused
}

// current reports whether Temporal still waits for this attempt of a step. Of a local one
// it can't know.
func (d *Activities) current(ctx context.Context) (bool, error) {
	info := activity.GetInfo(ctx)
	if d.Client == nil || info.IsLocalActivity {
		return false, nil
	}
	described, err := d.Client.DescribeWorkflowExecution(ctx, info.WorkflowExecution.ID, info.WorkflowExecution.RunID)
	if err != nil {
		return false, durable.FromRPC(err)
	}
	if described.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return false, nil
	}
	for _, p := range described.GetPendingActivities() {
		if p.GetActivityId() == info.ActivityID {
			return p.GetAttempt() == info.Attempt, nil
		}
	}
	return false, nil
}

// Decision names a write in a [agent.Fence]: what it is told is the same for all
// attempts at the write, and different for every other.
func Decision(of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "\n")))
	return hex.EncodeToString(sum[:8])
}
