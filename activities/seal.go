package activities

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/store"
)

// Seal stores the open part of a run's log, up to an event, as the next chunk of
// its session's chain; at a run's end the session's head too.
var Seal = durable.Activity[SealInput, SealResult]{Name: "fermata.seal"}

// SealInput says where to look, not what to store.
type SealInput struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	To      int64  `json:"to"`
	// End is set when the run ends with this.
	End *SealedEnd `json:"end,omitempty"`
}

// SealedEnd is what a session's head says of the run that ended last.
type SealedEnd struct {
	Agent  string       `json:"agent"`
	Status agent.Status `json:"status"`
	// Version is that of the head that the run began from.
	Version int64 `json:"version"`
}

// SealResult names the chunk.
type SealResult struct {
	Head string `json:"head"`
}

func (d *Deeds) seal(ctx context.Context, in SealInput) (SealResult, error) {
	defer beat(ctx)()
	open, err := d.openTail(ctx, in.Run, in.To)
	if err != nil {
		return SealResult{}, err
	}
	events := slices.DeleteFunc(slices.Clone(open.events), func(e agent.Event) bool { return e.Seq > in.To })
	if n := len(events); n == 0 || events[n-1].Seq != in.To {
		return SealResult{}, agent.Errorf(agent.Internal, "run %s has no open transcript up to event %d", in.Run, in.To)
	}
	digest, err := d.Log.Seal(ctx, open.head, in.Session, in.Run, events)
	if err != nil || in.End == nil {
		return SealResult{Head: digest}, err
	}
	return SealResult{Head: digest}, d.putHead(ctx, store.Head{
		V: agent.Version, Version: in.End.Version + 1, Session: in.Session, Run: in.Run, Agent: in.End.Agent,
		Status: in.End.Status, Digest: digest, Seq: in.To, Updated: activity.GetInfo(ctx).ScheduledTime.UTC().Truncate(time.Millisecond),
	})
}

// putHead writes a head; one that an earlier attempt of this step wrote is its own.
func (d *Deeds) putHead(ctx context.Context, h store.Head) error {
	err := d.Log.Store().PutHead(ctx, h)
	if !errors.Is(err, agent.Stale) {
		return err
	}
	stored, readErr := d.Log.Store().Head(ctx, h.Session)
	if readErr == nil && stored.Run == h.Run && stored.Version == h.Version && stored.Digest == h.Digest {
		return nil
	}
	return err
}
