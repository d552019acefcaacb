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
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/store"
)

// Open returns a run's definition, which this process knows, and claims the session's
// head if the store answers at once. It runs as a local activity: signals and queries
// wait for it.
var Open = durable.Activity[OpenInput, OpenResult]{Name: "fermata.open"}

// Claim claims the session's head if Open could not. It has as much time as any activity.
var Claim = durable.Activity[OpenInput, Claimed]{Name: "fermata.claim"}

// Refresh returns an agent's instructions, which this process knows, for a resume with refresh and for
// refresh_on_resume. It runs as a local activity, like Open.
var Refresh = durable.Activity[loop.RefreshArgs, RefreshResult]{Name: "fermata.refresh"}

// RefreshResult is recorded, so that a later deploy does not change what the run got.
type RefreshResult struct {
	Instructions string `json:"instructions,omitempty"`
	// Same means that the run has them already: Instructions is empty.
	Same bool `json:"same,omitempty"`
}

func (d *Activities) refresh(_ context.Context, in loop.RefreshArgs) (RefreshResult, error) {
	a, err := d.agentOf(in.Agent)
	if err != nil {
		return RefreshResult{}, err
	}
	if in.Known != "" && agent.NewInstructions(a.Spec.Instructions, "").Digest == in.Known {
		return RefreshResult{Same: true}, nil
	}
	return RefreshResult{Instructions: a.Spec.Instructions}, nil
}

// agentOf returns an agent of this build.
func (d *Activities) agentOf(name string) (Agent, error) {
	a, ok := d.Agents[name]
	if !ok {
		known := slices.Sorted(maps.Keys(d.Agents))
		return a, agent.Errorf(agent.CodeUnknownAgent, "agent %q is not in this worker's build; it has %s", name, strings.Join(known, ", ")).WithPath("agent")
	}
	return a, nil
}

// OpenWithin is the timeout of Open: a second more than it gives the store.
const OpenWithin = localStoreTimeout + time.Second

// OpenInput names the agent and the session.
type OpenInput struct {
	loop.OpenArgs
	// ClaimSeparately means that Open timed out before, and must leave the store to
	// [Claim].
	ClaimSeparately bool `json:"claim_separately,omitempty"`
	// onRun is called with each earlier run that is examined; it may be nil.
	onRun func(run string)
	// attempts is the number of this attempt, from 1; zero if nobody counts.
	attempts int32
}

// OpenResult is recorded, so that a deploy does not change a run that has started.
type OpenResult struct {
	Spec    agent.Spec `json:"spec"`
	Sources []string   `json:"sources,omitempty"`
	Claimed
	// Late means that the store did not answer at once: [Claim] has to fetch the head.
	Late bool `json:"late,omitempty"`
}

// Claimed says where a session's log ends when a run begins.
type Claimed struct {
	Head    string `json:"head,omitempty"`
	Seq     int64  `json:"seq,omitempty"`
	Version int64  `json:"version,omitempty"`
	// Fence is the fence of the run's claim. Its writes count on from there.
	Fence agent.Fence `json:"fence"`
	// Counters are the session's.
	Counters remembered.Counters  `json:"counters,omitzero"`
	Receipts []remembered.Receipt `json:"receipts,omitempty"`
	// Backlog is what earlier runs of the session have left.
	Backlog remembered.Backlog `json:"backlog,omitzero"`
	// StateVersion is the version of the session's state.
	StateVersion int `json:"state_version,omitempty"`
	// Imported is the export that the session came with.
	Imported string `json:"imported,omitempty"`
	// TerminatedRuns are executions of earlier runs that were ended from outside. Their
	// last events may not be stored.
	TerminatedRuns []string `json:"terminated_runs,omitempty"`
	// Unrecovered says why those events cannot be fetched; empty if they can, or nothing
	// is missing.
	Unrecovered string `json:"unrecovered,omitempty"`
}

// maxSpec limits a definition, as JSON in bytes. It shares a payload of 2 MB with the
// session's head.
const maxSpec = 1280 << 10

func (d *Activities) open(ctx context.Context, in OpenInput) (out OpenResult, err error) {
	a, err := d.agentOf(in.Agent)
	if err != nil {
		return out, err
	}
	if check := d.FlowInputs[in.Agent]; check != nil && in.Input != "" {
		if err := check(in.Input); err != nil {
			return out, err
		}
	}
	out.Spec, out.Sources = a.Spec, a.Sources
	if in.Judge != nil {
		if err := d.WithJudge(&out.Spec, *in.Judge); err != nil {
			return OpenResult{}, err
		}
	}
	if raw, err := json.Marshal(out.Spec); err != nil || len(raw) > maxSpec {
		return OpenResult{}, agent.Errorf(agent.CodeTooLarge, "agent %s can't start: its definition with the schemas of its tools has %d bytes, and %d are allowed", in.Agent, len(raw), maxSpec).WithPath("agent")
	}
	if out.Spec.Stateless { // no session: the store is not asked
		return out, nil
	}
	if in.ClaimSeparately {
		out.Late = true
		return out, nil
	}
	err = d.StorePace.withShortTimeout(ctx, func(ctx context.Context) (err error) {
		out.Claimed, err = d.head(ctx, in)
		return err
	})
	if mayPass(err) {
		out.Claimed, out.Late = Claimed{}, true
		return out, nil
	}
	return out, err
}

// claimHead claims the head. It leaves in its heartbeats how far it has come among the
// earlier runs, so that the next attempt continues from there.
func (d *Activities) claimHead(ctx context.Context, in OpenInput) (Claimed, error) {
	var at atomic.Pointer[string]
	if activity.HasHeartbeatDetails(ctx) {
		var left string
		if activity.GetHeartbeatDetails(ctx, &left) == nil { // on an error it examines all of them again
			in.After = cmp.Or(left, in.After)
		}
	}
	at.Store(&in.After)
	in.onRun, in.attempts = func(run string) { at.Store(&run) }, activity.GetInfo(ctx).Attempt
	defer heartbeatWith(ctx, func() any { return *at.Load() })()
	return d.head(ctx, in)
}

// head reads a session's head and claims it.
func (d *Activities) head(ctx context.Context, in OpenInput) (out Claimed, err error) {
	if err := d.Identity.checkCached(ctx); err != nil {
		return out, err
	}
	head, err := d.Log.Vacate(ctx, in.Session) // including a head with nothing but claims
	if errors.Is(err, agent.CodeStale) {       // a deletion ended meanwhile, or began
		again := durable.Within("start", err)
		again.Retryable = true
		return out, again
	}
	// Before the claim: a head in the wrong store would hide that the log is missing.
	if err == nil || errors.Is(err, agent.CodeNotFound) {
		err = d.checkStoreKnows(ctx, in, head)
	}
	if err != nil && !errors.Is(err, agent.CodeNotFound) {
		return out, err
	}
	if !in.Child {
		d.InFlight.Forget(in.Session)
	}
	inbox, err := d.Log.Backlog(ctx, head)
	if err != nil {
		return out, err
	}
	out = Claimed{Head: head.Digest, Seq: head.Seq, Version: head.Version, Fence: head.Fence.After(activity.GetInfo(ctx).ScheduledTime.UnixMicro()), Counters: head.Counters, Receipts: head.Receipts, Backlog: inbox, StateVersion: head.StateVersion, Imported: head.Imported}
	// No other run begins in a child's session. But a deletion finds sessions by their heads, and copies
	// of files are stored before the log.
	if in.Child && !in.Copies {
		return out, nil
	}
	return out, d.claim(ctx, in, head, &out)
}

// claim records in the head that the run has started, so that the next run knows of it. A
// listing would be too late and is rate-limited. It also looks for earlier runs that were
// terminated. The head of an import is left unchanged until its run has taken it.
func (d *Activities) claim(ctx context.Context, in OpenInput, head store.Head, out *Claimed) (err error) {
	if head.Import != "" {
		return nil
	}
	info := activity.GetInfo(ctx)
	run := info.WorkflowExecution.RunID
	if out.TerminatedRuns, out.Unrecovered, err = d.terminatedRuns(ctx, head, in.Session); err != nil {
		return err
	}
	switch {
	case slices.Contains(head.Claims, run): // an earlier attempt stored it, and its answer was lost
		out.Fence = head.Fence
		return nil
	case head.Run == run:
		return agent.Errorf(agent.CodeStale, "run %s has stored a part of the log, so it started before", run)
	}
	// Only claims of terminated runs are kept; the next run has to look for those again
	// if this one fails too.
	head.Claims = slices.Clone(out.TerminatedRuns[:min(len(out.TerminatedRuns), maxClaims)])
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
