package activities

import (
	"cmp"
	"context"
	"errors"

	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/journal"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// Locate finds the point in a session's log where a run begins, where that is not
// simply its end: behind a checkpoint, after the last events of a run that was
// terminated, or with a state of another version.
var Locate = durable.Activity[loop.LocateStep, LocateResult]{Name: "fermata.locate"}

// LocateResult is where the log stands, and where in it the run begins.
type LocateResult struct {
	Head    string            `json:"head,omitempty"`
	Seq     int64             `json:"seq,omitempty"`
	Version int64             `json:"version,omitempty"`
	Chain   int64             `json:"chain,omitempty"` // as a SealResult has it
	Numbers agent.Numbers     `json:"numbers,omitzero"`
	Posts   []agent.Post      `json:"posts,omitempty"`
	Inbox   agent.Inbox       `json:"inbox,omitzero"`
	Forked  *agent.Forked     `json:"forked,omitempty"`
	Turn    int               `json:"turn,omitempty"`
	Tools   []agent.ToolCount `json:"tools,omitempty"`
	// Migrated is the session's state, brought to the version.
	Migrated  *agent.Migrated `json:"migrated,omitempty"`
	Recovered string          `json:"recovered,omitempty"`
	Lost      string          `json:"lost,omitempty"`
}

func (d *Deeds) locate(ctx context.Context, in loop.LocateStep) (out LocateResult, err error) {
	defer beat(ctx)()
	head, err := d.Log.Head(ctx, in.Session)
	if err != nil && !errors.Is(err, agent.NotFound) {
		return out, err
	}
	if len(in.Behind) > 0 {
		if head, out.Recovered, out.Lost, err = d.recover(ctx, in, head); err != nil {
			return out, err
		}
	}
	out.Head, out.Seq, out.Version, out.Chain, out.Numbers = head.Digest, head.Seq, head.Version, max(in.Fence.Chain, head.Fence.Chain), head.Numbers
	if out.Inbox, err = d.Log.Inbox(ctx, head); err != nil {
		return out, err
	}
	out.Posts = head.Posts
	version := head.State
	view, err := d.Log.Known(ctx, head.Digest, nil)
	if in.From != nil && err == nil { // any event may be meant
		view, err = d.Log.View(ctx, head.Digest)
	}
	if err != nil {
		return out, err
	}
	if in.From != nil {
		if view, version, err = d.forkAt(ctx, in, head, view, &out); err != nil {
			return out, err
		}
	}
	if !in.Reset {
		out.Migrated, err = d.migrate(view.State(), version, in.State)
	}
	return out, err
}

// forkAt finds the checkpoint that a run begins behind, and returns the log as it
// was there and the version of its state.
func (d *Deeds) forkAt(ctx context.Context, in loop.LocateStep, head store.Head, view *store.View, out *LocateResult) (*store.View, int, error) {
	from, source := in.From, in.Session
	if from.Session != "" && from.Session != in.Session {
		own := head.Run == activity.GetInfo(ctx).WorkflowExecution.RunID // by an attempt before this one
		if source = from.Session; head.Seq > 0 && !own {
			return nil, 0, agent.Errorf(agent.InvalidInput, "session %s has a log of its own: a checkpoint of session %s can only begin a new session", in.Session, source).At("from.session")
		}
		var err error
		if view, head, err = d.foreign(ctx, in, source); err != nil {
			return nil, 0, err
		}
	}
	point, err := pointOf(view, head, *from)
	if err != nil {
		return nil, 0, err
	}
	if in.Silent && !journal.Asks(view, point) {
		return nil, 0, agent.Errorf(agent.InvalidInput, "at %s the model has nothing to answer; say in input.text what to do", point.ID).At("input")
	}
	if source != in.Session {
		if err := d.share(ctx, in, head, point, out); err != nil {
			return nil, 0, err
		}
	}
	out.Forked = &agent.Forked{Session: source, Run: point.Run, Checkpoint: point.ID, Retry: from.Retry != ""}
	out.Turn, out.Tools = point.Turn, point.Tools
	view = view.UpTo(point.Seq())
	return view, stateVersion(view), nil
}

// share begins a session's log with a part of another's. The head is put at once:
// it is what keeps the chunks from being collected, and from the other's deletion. A
// later attempt may find that the other has gone on: it replaces what it has read.
func (d *Deeds) share(ctx context.Context, in loop.LocateStep, other store.Head, point agent.Point, out *LocateResult) (err error) {
	if out.Head, out.Seq, err = d.Log.Cover(ctx, other.Digest, point.Seq()); err != nil {
		return err
	}
	out.Numbers = other.Numbers
	if err := d.adopt(ctx, in, out.Head); err != nil {
		return err
	}
	info := activity.GetInfo(ctx)
	stored, err := d.swapHead(ctx, store.Head{
		V: store.HeadVersion, Version: out.Version + 1, Session: in.Session, Fence: in.Fence, Run: info.WorkflowExecution.RunID, Agent: point.Agent, Status: agent.Running,
		Digest: out.Head, Seq: out.Seq, State: other.State, Numbers: out.Numbers, Updated: info.ScheduledTime.UTC(),
	})
	if err == nil { // which an attempt before this one may have stored, with another end
		out.Head, out.Seq, out.Numbers, out.Version = stored.Digest, stored.Seq, stored.Numbers, stored.Version
	}
	return err
}

// adopt keeps the chunks of another session that a fork is about to need. If that one
// has stored its log anew or was deleted just now, a later attempt looks again.
func (d *Deeds) adopt(ctx context.Context, in loop.LocateStep, chunk string) error {
	err := d.Log.Adopt(ctx, in.Session, chunk, in.From.Session)
	if errors.Is(err, agent.Stale) {
		again := durable.Within("start", err)
		again.Retryable = true
		return again
	}
	return err
}

func pointOf(view *store.View, head store.Head, from agent.From) (agent.Point, error) {
	if from.Retry == "" {
		return journal.Find(view, from.Checkpoint)
	}
	switch {
	case !agent.NamesRun(from.Retry, head.Run):
		return agent.Point{}, agent.Errorf(agent.Stale, "run %s is not the session's last, which is %s: somebody was quicker, or meant another", from.Retry, head.Run).At("from.retry")
	case head.Status != agent.Failed:
		return agent.Point{}, agent.Errorf(agent.Stale, "run %s has not failed, it is %s; fork it instead", head.Run, head.Status).At("from.retry")
	case from.Checkpoint == "":
		return journal.Last(view, head.Run)
	}
	return journal.Find(view, from.Checkpoint)
}

// foreign is another session's log, with what its live run has not stored yet:
// that is stored here, as the chunk that only the new session refers to.
func (d *Deeds) foreign(ctx context.Context, in loop.LocateStep, session string) (*store.View, store.Head, error) {
	last, err := d.Client.DescribeWorkflowExecution(ctx, session, "")
	forgotten := errors.As(err, new(*serviceerror.NotFound))
	if err != nil && !forgotten {
		return nil, store.Head{}, durable.ArriveRPC(err)
	}
	head, err := d.Log.Head(ctx, session) // after it: an end that is stored early may yet be another
	if err != nil && !errors.Is(err, agent.NotFound) {
		return nil, head, err
	}
	info := last.GetWorkflowExecutionInfo()
	live := info.GetCloseTime() == nil
	if !forgotten && (live || info.GetFirstRunId() != head.Run || !head.Status.Ended()) {
		if err := d.sealOpen(ctx, in.Session, session, info, &head); err != nil {
			return nil, head, err
		}
	}
	view, err := d.Log.View(ctx, head.Digest)
	if err == nil { // the head may be older than what was stored since, and has no numbers of that
		head.Numbers = journal.Numbers(head.Numbers, view.Events())
	}
	return view, head, err
}

// sealOpen stores what a session's last run has not, as a chunk of the fork's. A first
// run may have stored nothing: then no head names it.
func (d *Deeds) sealOpen(ctx context.Context, fork, session string, info *workflowpb.WorkflowExecutionInfo, head *store.Head) error {
	open, err := signals.ReadSettled(ctx, d.Client, session, info)
	if err != nil {
		return deployed(ctx, err)
	}
	if len(open.Events) == 0 { // it has stored all meanwhile, or never began
		head.Digest = cmp.Or(open.Head, head.Digest)
		return nil
	}
	digest, err := d.Log.Seal(ctx, open.Head, fork, info.GetFirstRunId(), false, open.Events)
	if err != nil {
		return err
	}
	head.Digest, head.Seq = digest, open.Events[len(open.Events)-1].Seq
	return nil
}

// deployedWithin is how many attempts wait for a worker whose build can go on with a live run,
// which is some minutes: while builds change, any of them may be asked.
const deployedWithin = 10

// deployed lets another attempt ask again if a worker of another build has answered.
func deployed(ctx context.Context, err error) error {
	if !errors.Is(err, agent.Incompatible) || activity.GetInfo(ctx).Attempt >= deployedWithin {
		return err
	}
	again := durable.Within("start", err)
	again.Retryable = true
	return again
}

// stateVersion is the version in which a log's last run kept the session's state.
func stateVersion(v *store.View) int {
	if spec := v.Spec(); spec != nil {
		return spec.StateVersion
	}
	return 0
}
