package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/store"
)

// Open reads what a run is made of, which this process knows, and claims the session's
// head if the store answers at once. It runs as a local activity: signals and queries
// wait for it.
var Open = durable.Activity[OpenInput, OpenResult]{Name: "fermata.open"}

// Claim claims the session's head where Open could not. It has all its time.
var Claim = durable.Activity[OpenInput, Claimed]{Name: "fermata.claim"}

// OpenWithin is how long Open may take: what it gives the store, and a little more.
const OpenWithin = storeSoon + time.Second

// OpenInput names the agent and the session.
type OpenInput struct {
	loop.OpenStep
	// Apart tells that Open did not come back, and has to leave the store to [Claim].
	Apart bool `json:"apart,omitempty"`
	// passes is told of each run before this one that is looked at; it may be nil.
	passes func(run string)
	// tries is how often it was tried, with this time; zero does not count.
	tries int32
}

// OpenResult is recorded, so that a deploy does not change a run that has begun.
type OpenResult struct {
	Spec    agent.Spec `json:"spec"`
	Sources []string   `json:"sources,omitempty"`
	Claimed
	// Late tells that the store did not answer at once: the head is to be had by [Claim].
	Late bool `json:"late,omitempty"`
}

// Claimed is where a session's log stands as a run begins.
type Claimed struct {
	Head    string `json:"head,omitempty"`
	Seq     int64  `json:"seq,omitempty"`
	Version int64  `json:"version,omitempty"`
	// Fence is that of the run's claim: its writes go on from there.
	Fence agent.Fence `json:"fence"`
	// Numbers are the session's.
	Numbers agent.Numbers `json:"numbers,omitzero"`
	Posts   []agent.Post  `json:"posts,omitempty"`
	// Inbox is what the session's runs before this one have left.
	Inbox agent.Inbox `json:"inbox,omitzero"`
	// State is the version of the session's state.
	State int `json:"state,omitempty"`
	// Imported is the export that the session came with.
	Imported string `json:"imported,omitempty"`
	// Behind are executions of runs before this one that were ended from outside:
	// their last events may not be stored.
	Behind []string `json:"behind,omitempty"`
	// Lost says why those can't be looked for; empty where they can, or need not be.
	Lost string `json:"lost,omitempty"`
}

// maxSpec bounds what a run records of its agent, in bytes: with the session's head it is
// one payload, which may have 2 MB.
const maxSpec = 1280 << 10

func (d *Deeds) open(ctx context.Context, in OpenInput) (out OpenResult, err error) {
	a, ok := d.Agents[in.Agent]
	if !ok {
		known := slices.Sorted(maps.Keys(d.Agents))
		return out, agent.Errorf(agent.UnknownAgent, "agent %q is not in this worker's build; it has %s", in.Agent, strings.Join(known, ", ")).At("agent")
	}
	out.Spec, out.Sources = a.Spec, a.Sources
	if raw, err := json.Marshal(out.Spec); err != nil || len(raw) > maxSpec {
		return OpenResult{}, agent.Errorf(agent.TooLarge, "agent %s is not begun: what it is made of, with the schemas of its tools, has %d bytes, and may have %d", in.Agent, len(raw), maxSpec).At("agent")
	}
	if in.Apart {
		out.Late = true
		return out, nil
	}
	err = d.Pace.soon(ctx, func(ctx context.Context) (err error) {
		out.Claimed, err = d.head(ctx, in)
		return err
	})
	if mayPass(err) {
		out.Claimed, out.Late = Claimed{}, true
		return out, nil
	}
	return out, err
}

// claimHead leaves to its next attempt how far it has come among the runs before.
func (d *Deeds) claimHead(ctx context.Context, in OpenInput) (Claimed, error) {
	var at atomic.Pointer[string]
	if activity.HasHeartbeatDetails(ctx) {
		var left string
		if activity.GetHeartbeatDetails(ctx, &left) == nil { // else it looks at all of them again
			in.After = cmp.Or(left, in.After)
		}
	}
	at.Store(&in.After)
	in.passes, in.tries = func(run string) { at.Store(&run) }, activity.GetInfo(ctx).Attempt
	defer beatWith(ctx, func() any { return *at.Load() })()
	return d.head(ctx, in)
}

// head reads a session's head and claims it.
func (d *Deeds) head(ctx context.Context, in OpenInput) (out Claimed, err error) {
	if err := d.Identity.soon(ctx); err != nil {
		return out, err
	}
	head, err := d.Log.Head(ctx, in.Session) // also one that has nothing but claims
	if err == nil || errors.Is(err, agent.NotFound) {
		err = d.before(ctx, in, head)
	}
	if err != nil && !errors.Is(err, agent.NotFound) {
		return out, err
	}
	inbox, err := d.Log.Inbox(ctx, head)
	if err != nil {
		return out, err
	}
	out = Claimed{Head: head.Digest, Seq: head.Seq, Version: head.Version, Fence: head.Fence.After(activity.GetInfo(ctx).ScheduledTime.UnixMicro()), Numbers: head.Numbers, Posts: head.Posts, Inbox: inbox, State: head.State, Imported: head.Imported}
	if in.Child { // its session is nobody's but its own
		return out, nil
	}
	return out, d.claim(ctx, in, head, &out)
}

// claim says in the session's head that the run has begun, so that the next one
// knows of it without a listing, which is late and rationed; and looks what became of
// those that did so before it. An import stays as it came until its run has taken it.
func (d *Deeds) claim(ctx context.Context, in OpenInput, head store.Head, out *Claimed) (err error) {
	if head.Import != "" {
		return nil
	}
	info := activity.GetInfo(ctx)
	run := info.WorkflowExecution.RunID
	if out.Behind, out.Lost, err = d.behind(ctx, head, in.Session); err != nil {
		return err
	}
	switch {
	case slices.Contains(head.Claims, run): // by an attempt whose answer was lost
		out.Fence = head.Fence
		return nil
	case head.Run == run:
		return agent.Errorf(agent.Stale, "run %s has stored a part of the log, and has begun before", run)
	}
	head.Claims = slices.Clone(out.Behind[:min(len(out.Behind), maxClaims)])
	slices.Reverse(head.Claims) // the latest last
	head.Claims = append(head.Claims, run)
	head.V, head.Session, head.Updated = store.HeadVersion, in.Session, info.ScheduledTime.UTC().Truncate(time.Millisecond)
	head.Version++
	head.Fence = head.Fence.After(info.ScheduledTime.UnixMicro())
	head.Fence.N, head.Fence.By = 1, Decision(run, "claim")
	out.Fence = head.Fence
	stored, err := d.swapHead(ctx, head)
	out.Version = stored.Version
	return err
}
