package activities

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/store"
)

// Seal stores the tail of a run's log, up to a position, as the next chunk of its
// session's chain, and moves the session's head there. Repeating it changes nothing.
var Seal = durable.Activity[SealInput, SealResult]{Name: "fermata.seal"}

// SealInput says where to read, not what to store.
type SealInput struct {
	loop.SealArgs
	UpTo LogPosition `json:"up_to"`
}

// SealResult has the chunk's digest and the head's new version.
type SealResult struct {
	Head    string `json:"head"`
	Version int64  `json:"version"`
	// Chain is the chain of the stored head's fence. It differs from the input's if the
	// write overtook those of an execution before a reset.
	Chain int64 `json:"chain"`
	// BacklogBlobs name the backlog as it is stored now.
	BacklogBlobs []remembered.BacklogBlob `json:"backlog_blobs,omitempty"`
}

func (d *Activities) seal(ctx context.Context, in SealInput) (out SealResult, err error) {
	if activity.GetInfo(ctx).IsLocalActivity {
		// A local activity keeps its run's workflow task open, so it gives the store
		// little time. The least is for a suspension, which somebody waits for.
		ask := d.StorePace.withShortTimeout
		if in.Status == agent.StatusSuspended {
			ask = d.StorePace.withRestTimeout
		}
		return out, ask(ctx, func(ctx context.Context) error {
			out, err = d.store(ctx, in)
			return err
		})
	}
	defer heartbeat(ctx)()
	return d.store(ctx, in)
}

// store seals the tail and puts the head.
func (d *Activities) store(ctx context.Context, in SealInput) (SealResult, error) {
	digest := in.StoredChunk
	// Otherwise all of the log is stored already, and only the head has to move.
	if digest == "" {
		var err error
		if digest, err = d.sealTail(ctx, in); err != nil {
			return SealResult{}, err
		}
	}
	// Before the head, which names the blobs: a head must never name what is not stored.
	kept, err := d.Log.PutBacklog(ctx, in.Session, in.BacklogBlobs, in.Backlog.Events)
	if err != nil {
		return SealResult{}, asResend(err)
	}
	info := activity.GetInfo(ctx)
	stored, err := d.putHead(ctx, store.Head{
		V: store.HeadVersion, Version: in.Version + 1, Session: in.Session, Fence: in.Fence, Run: in.Run, Execution: info.WorkflowExecution.RunID, Agent: in.Agent,
		Status: in.Status, StateVersion: in.StateVersion, Retention: in.Retention, Imported: in.Imported, Digest: digest, Seq: in.UpTo.Seq, Counters: in.Counters, Receipts: in.Receipts, Backlog: remembered.Backlog{Unfinished: in.Backlog.Unfinished}, BacklogBlobs: kept, Updated: info.ScheduledTime.UTC().Truncate(time.Millisecond),
	})
	return SealResult{Head: stored.Digest, Version: stored.Version, Chain: stored.Fence.Chain, BacklogBlobs: stored.BacklogBlobs}, err
}

// sealTail stores a tail and returns the chunk's digest.
func (d *Activities) sealTail(ctx context.Context, in SealInput) (string, error) {
	open, err := d.openTail(ctx, in.UpTo)
	if err != nil {
		return "", err
	}
	events := slices.DeleteFunc(slices.Clone(open.events), func(e agent.Event) bool { return e.Seq > in.UpTo.Seq })
	// A tail that the run was queried for may not reach so far.
	if n := len(events); n == 0 || events[n-1].Seq != in.UpTo.Seq {
		return "", agent.Errorf(agent.CodeInternal, "run %s has no open transcript up to event %d", in.Run, in.UpTo.Seq)
	}
	return d.Log.Seal(ctx, open.head, in.Session, in.Run, in.Status == agent.StatusRunning, events)
}

// asResend makes a missing backlog blob an error after which the run sends its whole
// backlog again. A reset execution may refer to events that were dealt with, and so
// deleted, before the reset.
func asResend(err error) error {
	if !errors.Is(err, agent.CodeChunkMissing) {
		return err
	}
	e := durable.Within("keeping what waits", err)
	e.Retryable = true
	return e
}
