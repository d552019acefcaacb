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

// Seal stores the open part of a run's log, up to a place, as the next chunk of
// its session's chain, and moves the session's head there.
var Seal = durable.Activity[SealInput, SealResult]{Name: "fermata.seal"}

// SealInput says where to look, not what to store.
type SealInput struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	Upto    Place  `json:"upto"`
	// Stored names the chunk that ends there, where all of the log is stored already:
	// then only the head is put. Empty where there is something to seal.
	Stored string       `json:"stored,omitempty"`
	Agent  string       `json:"agent"`
	Status agent.Status `json:"status"` // running, suspended, or the end that the run has come to
	// Version is that of the session's head as the run knows it.
	Version int64         `json:"version"`
	Numbers agent.Numbers `json:"numbers,omitzero"`
	Posts   []agent.Post  `json:"posts,omitempty"`
	Inbox   agent.Inbox   `json:"inbox,omitzero"`
	// Begun is when the run began, and State the version of the session's state.
	Begun time.Time `json:"begun,omitzero"`
	State int       `json:"state,omitempty"`
	// Imported is the export that the session came with.
	Imported string `json:"imported,omitempty"`
}

// SealResult names the chunk and the head's new version.
type SealResult struct {
	Head    string `json:"head"`
	Version int64  `json:"version"`
}

func (d *Deeds) seal(ctx context.Context, in SealInput) (out SealResult, err error) {
	if activity.GetInfo(ctx).IsLocalActivity {
		return out, d.Pace.soon(ctx, func(ctx context.Context) error {
			out, err = d.store(ctx, in)
			return err
		})
	}
	defer beat(ctx)()
	return d.store(ctx, in)
}

// store seals the open part and puts the head.
func (d *Deeds) store(ctx context.Context, in SealInput) (SealResult, error) {
	digest := in.Stored
	if digest == "" {
		var err error
		if digest, err = d.sealTail(ctx, in); err != nil {
			return SealResult{}, err
		}
	}
	version, err := d.putHead(ctx, store.Head{
		V: agent.Version, Version: in.Version + 1, Session: in.Session, Run: in.Run, Execution: activity.GetInfo(ctx).WorkflowExecution.RunID, Begun: in.Begun, Agent: in.Agent,
		Status: in.Status, State: in.State, Imported: in.Imported, Digest: digest, Seq: in.Upto.Seq, Numbers: in.Numbers, Posts: in.Posts, Inbox: in.Inbox, Updated: activity.GetInfo(ctx).ScheduledTime.UTC().Truncate(time.Millisecond),
	})
	return SealResult{Head: digest, Version: version}, err
}

// sealTail stores the open part of a log and returns the chunk's name.
func (d *Deeds) sealTail(ctx context.Context, in SealInput) (string, error) {
	open, err := d.openTail(ctx, in.Upto)
	if err != nil {
		return "", err
	}
	events := slices.DeleteFunc(slices.Clone(open.events), func(e agent.Event) bool { return e.Seq > in.Upto.Seq })
	if n := len(events); n == 0 || events[n-1].Seq != in.Upto.Seq {
		return "", agent.Errorf(agent.Internal, "run %s has no open transcript up to event %d", in.Run, in.Upto.Seq)
	}
	return d.Log.Seal(ctx, open.head, in.Session, in.Run, in.Status == agent.Running, events)
}

// late tells whether a head comes from an execution that was terminated, and whose
// end a later run has stored.
func late(stored, h store.Head) bool {
	return stored.Recovered && stored.Execution == h.Execution
}

// succeeded tells whether a later run has begun than the one that a head comes from,
// which was terminated.
func succeeded(stored, h store.Head) bool {
	n := len(stored.Claims)
	return stored.Run == h.Run && n > 0 && stored.Claims[n-1] != h.Run
}

// putHead writes a head and returns its version. Where this run wrote one that
// it does not know of (an attempt whose answer was lost, an execution that was
// reset), that one is its own to replace; so is the late one of an older run, which
// was terminated. A younger run's is not.
func (d *Deeds) putHead(ctx context.Context, h store.Head) (int64, error) {
	err := d.Log.Store().PutHead(ctx, h)
	if !errors.Is(err, agent.Stale) {
		return h.Version, err
	}
	stored, readErr := d.Log.Store().Head(ctx, h.Session)
	switch {
	case readErr != nil:
		return 0, readErr
	case stored.Run != h.Run && !stored.Begun.Before(h.Begun), late(stored, h), succeeded(stored, h):
		return 0, err
	case stored.Digest == h.Digest && stored.Status == h.Status && stored.Updated.Equal(h.Updated):
		return stored.Version, nil // by an attempt of the same step
	}
	h.Version = stored.Version + 1
	return h.Version, d.Log.Store().PutHead(ctx, h)
}
