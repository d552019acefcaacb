package activities

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/journal"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// Locate finds where in a session's log a run begins, if that is not simply its end: at a
// checkpoint, after a terminated run's last events, or with a state of another version.
var Locate = durable.Activity[loop.LocateArgs, LocateResult]{Name: "fermata.locate"}

// LocateResult says where the log ends, and where in it the run begins.
type LocateResult struct {
	Head     string               `json:"head,omitempty"`
	Seq      int64                `json:"seq,omitempty"`
	Version  int64                `json:"version,omitempty"`
	Chain    int64                `json:"chain,omitempty"` // like [SealResult.Chain]
	Counters remembered.Counters  `json:"counters,omitzero"`
	Receipts []remembered.Receipt `json:"receipts,omitempty"`
	Backlog  remembered.Backlog   `json:"backlog,omitzero"`
	Forked   *agent.Forked        `json:"forked,omitempty"`
	Turn     int                  `json:"turn,omitempty"`
	Tools    []agent.ToolCount    `json:"tools,omitempty"`
	// Migrated is the session's state in the agent's version.
	Migrated *agent.Migrated `json:"migrated,omitempty"`
	// Artifacts are the last versions of the session's artifacts at the point.
	Artifacts []agent.Artifact `json:"artifacts,omitempty"`
	// Skills are those that are active at the point, without their instructions.
	Skills []agent.SkillUpdate `json:"skills,omitempty"`
	// Lessons are what the session's runs have learned, up to the point.
	Lessons []agent.Lesson `json:"lessons,omitempty"`
	// Task is what the run before was asked, if the run continues it and needs it.
	Task string `json:"task,omitempty"`
	// TaskOf is the agent that Task was given to; empty if it hides its task in listings.
	TaskOf      string `json:"task_of,omitempty"`
	Recovered   string `json:"recovered,omitempty"`
	Unrecovered string `json:"unrecovered,omitempty"`
}

func (d *Activities) locate(ctx context.Context, in loop.LocateArgs) (out LocateResult, err error) {
	defer heartbeat(ctx)()
	head, err := d.Log.Head(ctx, in.Session)
	if err != nil && !errors.Is(err, agent.CodeNotFound) {
		return out, err
	}
	// First: what is recovered moves the head that all else here reads.
	if len(in.TerminatedRuns) > 0 {
		if head, out.Recovered, out.Unrecovered, err = d.recover(ctx, in, head); err != nil {
			return out, err
		}
	}
	out.Head, out.Seq, out.Version, out.Chain, out.Counters = head.Digest, head.Seq, head.Version, max(in.Fence.Chain, head.Fence.Chain), head.Counters
	if out.Backlog, err = d.Log.Backlog(ctx, head); err != nil {
		return out, err
	}
	out.Receipts = head.Receipts
	version := head.StateVersion
	view, err := d.Log.Known(ctx, head.Digest, nil)
	if (in.From != nil || in.Task) && err == nil { // any event may be a checkpoint or the task, so the whole log is read
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
	if in.Reset {
		return out, nil
	}
	if in.From == nil || !in.From.DropArtifacts {
		out.Artifacts = view.Artifacts()
	}
	for _, u := range view.Skills() {
		out.Skills = append(out.Skills, agent.SkillUpdate{Name: u.Name, Digest: u.Digest, Cause: u.Cause})
	}
	out.Lessons = view.Lessons()
	if in.Task {
		out.Task, out.TaskOf = cut(taskIn(view), maxJudgedTask), listedAgent(view)
	}
	out.Migrated, err = d.migrate(view.State(), version, in.StateVersion)
	return out, err
}

// listedAgent returns the agent of a log's last run; empty if it hides its task in listings.
func listedAgent(v *store.View) string {
	if spec := v.Spec(); spec != nil && !spec.Redact {
		return spec.Name
	}
	return ""
}

// forkAt finds the checkpoint at which a run begins. It returns the log up to there, and
// the version of its state.
func (d *Activities) forkAt(ctx context.Context, in loop.LocateArgs, head store.Head, view *store.View, out *LocateResult) (*store.View, int, error) {
	from, source := in.From, in.Session
	if from.Session != "" && from.Session != in.Session {
		own := head.Run == activity.GetInfo(ctx).WorkflowExecution.RunID // an earlier attempt of this activity
		if source = from.Session; head.Seq > 0 && !own {
			return nil, 0, agent.Errorf(agent.CodeInvalidInput, "session %s has a log of its own: a checkpoint of session %s can only begin a new session", in.Session, source).WithPath("from.session")
		}
		var err error
		if view, head, err = d.otherSession(ctx, in, source); err != nil {
			return nil, 0, err
		}
	}
	point, err := pointOf(view, head, source, *from)
	if err != nil {
		return nil, 0, err
	}
	if in.NoMessage && !journal.NeedsReply(view, point) {
		return nil, 0, agent.Errorf(agent.CodeInvalidInput, "at %s the model has nothing to answer; say in input.text what to do", point.ID).WithPath("input")
	}
	if (len(from.Redo) > 0 || from.ReplaceInput) && !journal.IsFlow(view.UpTo(point.Seq())) {
		return nil, 0, agent.Errorf(agent.CodeInvalidInput, "agent %s is no flow: it has no steps to make again, and no input to replace", point.Agent).WithPath("from.redo")
	}
	if source != in.Session {
		if err := d.share(ctx, in, head, point, out); err != nil {
			return nil, 0, err
		}
	}
	out.Forked = &agent.Forked{Session: source, Run: point.Run, Checkpoint: point.ID, Retry: from.Retry != "", Redo: from.Redo, ReplaceInput: from.ReplaceInput, DropArtifacts: from.DropArtifacts}
	out.Turn, out.Tools = point.Turn, point.Tools
	view = view.UpTo(point.Seq())
	return view, stateVersion(view), nil
}

// share begins a session's log with a part of another session's. It puts the head at
// once: the head keeps the chunks from being collected, and from being deleted with the
// other session. If the other session has gone on, a later attempt replaces what this one
// has read.
func (d *Activities) share(ctx context.Context, in loop.LocateArgs, other store.Head, point agent.Checkpoint, out *LocateResult) (err error) {
	if out.Head, out.Seq, err = d.Log.ChunkWith(ctx, other.Digest, point.Seq()); err != nil {
		return err
	}
	out.Counters = other.Counters
	out.Counters.Principal, out.Counters.Grants = "", nil // who starts the fork has a memory and approvals of their own
	// Before the head names the chunk: a collection in between would delete it.
	if err := d.adopt(ctx, in, out.Head); err != nil {
		return err
	}
	info := activity.GetInfo(ctx)
	stored, err := d.swapHead(ctx, store.Head{
		V: store.HeadVersion, Version: out.Version + 1, Session: in.Session, Fence: in.Fence, Run: info.WorkflowExecution.RunID, Agent: point.Agent, Status: agent.StatusRunning,
		Digest: out.Head, Seq: out.Seq, StateVersion: other.StateVersion, Counters: out.Counters, Updated: info.ScheduledTime.UTC(),
	})
	if err == nil { // an earlier attempt may have stored another end; the stored one counts
		out.Head, out.Seq, out.Counters, out.Version = stored.Digest, stored.Seq, stored.Counters, stored.Version
	}
	return err
}

// adopt marks a chunk of another session as used by this fork. If that session has just
// merged its log or was deleted, a later attempt reads it again.
func (d *Activities) adopt(ctx context.Context, in loop.LocateArgs, chunk string) error {
	err := d.Log.Adopt(ctx, in.Session, chunk, in.From.Session)
	if errors.Is(err, agent.CodeStale) {
		again := durable.Within("start", err)
		again.Retryable = true
		return again
	}
	return err
}

// pointOf returns the checkpoint of a session that from names. A retry is refused unless it names the
// session's last run, and that run has failed.
func pointOf(view *store.View, head store.Head, session string, from agent.StartFrom) (agent.Checkpoint, error) {
	if from.Retry == "" {
		return journal.Find(view, session, from.Checkpoint)
	}
	switch {
	case !wire.MatchesRunID(from.Retry, head.Run):
		return agent.Checkpoint{}, agent.Errorf(agent.CodeStale, "run %s is not the session's last, which is %s: somebody was quicker, or meant another", from.Retry, head.Run).WithPath("from.retry")
	case head.Status != agent.StatusFailed:
		return agent.Checkpoint{}, agent.Errorf(agent.CodeStale, "run %s has not failed, it is %s; fork it instead", head.Run, head.Status).WithPath("from.retry")
	case from.Checkpoint == "":
		return journal.Last(view, session, head.Run)
	}
	return journal.Find(view, session, from.Checkpoint)
}

// otherSession returns another session's log, with what its live run has not stored yet.
// It stores that as a chunk that only the new session refers to.
func (d *Activities) otherSession(ctx context.Context, in loop.LocateArgs, session string) (*store.View, store.Head, error) {
	last, err := d.Client.DescribeWorkflowExecution(ctx, session, "")
	forgotten := errors.As(err, new(*serviceerror.NotFound))
	if err != nil && !forgotten {
		return nil, store.Head{}, durable.FromRPC(err)
	}
	head, err := d.Log.Head(ctx, session) // after Describe: a run may store its end early, and end otherwise after all
	if err != nil && !errors.Is(err, agent.CodeNotFound) {
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
	if err == nil { // the head may be older than the log, and its counters with it
		head.Counters = journal.Counters(head.Counters, view.Events())
	}
	return view, head, err
}

// sealOpen stores the tail of a session's last run, as a chunk of the fork's. A first run
// may have stored nothing; then no head exists.
func (d *Activities) sealOpen(ctx context.Context, fork, session string, info *workflowpb.WorkflowExecutionInfo, head *store.Head) error {
	open, err := signals.ReadSettled(ctx, d.Client, session, info)
	switch {
	case err != nil:
		return deployed(ctx, err)
	case slices.ContainsFunc(open.Events, func(e agent.Event) bool { return e.Started != nil && e.Started.Spec != nil && e.Started.Spec.Stateless }):
		return agent.Errorf(agent.CodeInvalidInput, "the run of %s is stateless: it keeps no session that another run could begin with", session).WithPath("from")
	}
	if len(open.Events) == 0 { // it has stored everything meanwhile, or never began
		head.Digest = cmp.Or(open.Head, head.Digest)
		return nil
	}
	if slices.ContainsFunc(open.Events, func(e agent.Event) bool { return len(e.Files()) > 0 }) {
		// The fork's chunk would name files that nothing keeps for it. A live run stores such events at
		// once. For a run that was ended from outside, the session's next run does (see recover).
		if info.GetCloseTime() != nil {
			return agent.Errorf(agent.CodeStale, "the last run of session %s ended before it had stored all of its events; start a run in session %s first: it stores them", session, session)
		}
		again := agent.Errorf(agent.CodeStoreUnavailable, "session %s has a file that is not stored yet", session)
		again.Retryable = true
		return again
	}
	digest, err := d.Log.Seal(ctx, open.Head, fork, info.GetFirstRunId(), false, open.Events)
	if err != nil {
		return err
	}
	head.Digest, head.Seq = digest, open.Events[len(open.Events)-1].Seq
	return nil
}

// deployedWithin is how many attempts wait for a worker whose build can replay a live
// run: some minutes. During a deploy a query may reach any build.
const deployedWithin = 10

// deployed makes the error retryable if a worker of another build has answered.
func deployed(ctx context.Context, err error) error {
	if !errors.Is(err, agent.CodeIncompatible) || activity.GetInfo(ctx).Attempt >= deployedWithin {
		return err
	}
	again := durable.Within("start", err)
	again.Retryable = true
	return again
}

// stateVersion returns the version of the session's state in a log's last run.
func stateVersion(v *store.View) int {
	if spec := v.Spec(); spec != nil {
		return spec.StateVersion
	}
	return 0
}
