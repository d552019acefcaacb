package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/store"
)

// putHead stores a head that a run has decided, and returns it as stored. The store
// refuses a lower fence for ever, with one exception: an execution that was reset counts
// again from the point of the reset, and must overtake the writes that it replaces (see
// overtake).
func (d *Activities) putHead(ctx context.Context, h store.Head) (store.Head, error) {
	stored, err := d.Log.PutHead(ctx, h)
	if errors.Is(err, agent.CodeStale) {
		return d.overtake(ctx, h, err)
	}
	return stored, err
}

// swapHead stores a head that was derived from the stored one. If the stored head has
// moved meanwhile, by a late write of an earlier run for instance, the error is
// retryable: a later attempt reads it again.
func (d *Activities) swapHead(ctx context.Context, h store.Head) (store.Head, error) {
	stored, err := d.Log.SwapHead(ctx, h)
	if errors.Is(err, agent.CodeStale) {
		again := durable.Within("start", err)
		again.Retryable = true
		return stored, again
	}
	return stored, err
}

// overtake begins a new chain for a write whose fence was refused. It does so only if the
// stored head is of the same run, and Temporal waits for this very attempt. It asks
// Temporal after it has read the head, and replaces only the head that it read. So
// whoever overtakes it in between has moved the head, and the swap fails.
func (d *Activities) overtake(ctx context.Context, h store.Head, refused error) (stored store.Head, err error) {
	for errors.Is(refused, agent.CodeStale) {
		stored, err = d.Log.Head(ctx, h.Session)
		switch {
		case errors.Is(err, agent.CodeNotFound) || err == nil && stored.Run != h.Run:
			return store.Head{}, refused
		case err != nil:
			return store.Head{}, err
		case stored.Fence.N == h.Fence.N && stored.Fence.By == h.Fence.By: // an earlier attempt of this write succeeded
			return stored, nil
		}
		current, err := d.current(ctx)
		if err != nil {
			return store.Head{}, err
		}
		if !current {
			return store.Head{}, refused
		}
		// h may name blobs that were deleted after the point of the reset. It must not be
		// stored then.
		if _, err := d.Log.Backlog(ctx, h); err != nil {
			return store.Head{}, asResend(err)
		}
		// A higher chain beats every number of the chain before it.
		h.Fence.Chain, h.Version = stored.Fence.Chain+1, stored.Version+1
		if stored, refused = d.Log.SwapHead(ctx, h); refused == nil {
			return stored, nil
		}
	}
	return store.Head{}, refused
}

// current reports whether Temporal waits for this attempt of the activity. For a local
// activity it cannot know, and returns false.
func (d *Activities) current(ctx context.Context) (bool, error) {
	info := activity.GetInfo(ctx)
	if d.Client == nil || info.IsLocalActivity {
		return false, nil
	}
	described, err := d.Client.DescribeWorkflowExecution(ctx, info.WorkflowExecution.ID, info.WorkflowExecution.RunID)
	if err != nil {
		return false, durable.FromRPC(err)
	}
	if durable.Closed(described.GetWorkflowExecutionInfo()) {
		return false, nil
	}
	for _, p := range described.GetPendingActivities() {
		if p.GetActivityId() == info.ActivityID {
			return p.GetAttempt() == info.Attempt, nil
		}
	}
	return false, nil
}

// Decision returns the name of a write in a [agent.Fence]. The same parts give the same
// name, so all attempts at a write share it.
func Decision(of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "\n")))
	return hex.EncodeToString(sum[:8])
}
