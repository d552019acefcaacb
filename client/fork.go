package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/journal"
	"github.com/fermata-agents/fermata/store"
)

// ForkOptions says how a new run begins; nil means all defaults.
type ForkOptions struct {
	// Checkpoint is the id of one of the session's own checkpoints. Empty means the newest
	// one for a fork. For a retry it means the last one from which the failed run can
	// continue. Start means the run's own beginning instead.
	Checkpoint string
	Start      bool
	// Text is a message for the model at the checkpoint. It is required if the model has
	// nothing to answer there, such as after a completed run.
	Text string
	// Edit replaces the last message of a person before the checkpoint with Text. The files
	// of that message stay, unless there are Files. Of a flow, Text replaces the input, and
	// files stay likewise: the results of its steps count where the step has the same
	// arguments.
	Edit bool
	// Files go to the model with Text. Of a flow, they need Edit, and are those of the new
	// input. [PreparedRun.Start] stores them with the run's session.
	Files []FileInput
	// Redo are paths of a flow's steps that are made again although they have results; the
	// path of a scope names all steps in it. See [Client.Steps].
	Redo []string
	// DropArtifacts makes the run begin without the artifacts that were saved before the
	// checkpoint. They stay in the store.
	DropArtifacts bool
	// NewSession makes a fork begin a new session, so this one stays as it is. Session is
	// the new session's id; empty means a new id. A retry stays in its session.
	NewSession bool
	Session    string
	// Agent is the agent of the new run; empty means the agent of the checkpoint's run.
	Agent  string
	By     string
	Limits agent.Limits
	Labels map[string]string
	// EndWith ends the run that [PreparedRun.Start] begins with a context; nil means that no
	// context ends it. See [StartOptions.EndWith].
	EndWith *EndWith
}

// PreparedRun is a run that can begin at a checkpoint, with the plan of what it keeps and
// may repeat. Nothing has happened yet: [PreparedRun.Start] begins it.
type PreparedRun struct {
	agent.ForkPlan
	client  *Client
	session string
	start   agent.Start
	kept    []agent.Part // with the files of an edited message
	files   []FileInput
	endWith *EndWith
}

// Start starts the run. If several callers start at once, one succeeds, and the others
// get [agent.CodeBusy]. A retry that comes when the first one has ended already fails:
// its Outcome has [agent.CodeStale]. It stores files first: errors are those of
// [Client.PutFiles], and of [Client.File] if a kept file is another session's.
func (a *PreparedRun) Start(ctx context.Context) (*Run, error) {
	if err := a.endWith.over(ctx); err != nil {
		return nil, err
	}
	start := a.start
	parts, err := a.client.PutFiles(ctx, a.session, a.files...)
	if err == nil && len(parts) == 0 {
		parts, err = a.client.ownParts(ctx, a.session, a.kept)
	}
	if err == nil && start.From.ReplaceInput {
		err = onlyFiles(parts)
	}
	if err != nil {
		return nil, fmt.Errorf("starting the run: %w", err)
	}
	start.Input.Parts = parts
	return a.client.start(ctx, a.session, start, a.endWith)
}

// onlyFiles returns an error if a text stands for a deleted file. A flow's input is the last text of
// its start, so the function would get that text.
func onlyFiles(parts []agent.Part) error {
	for _, p := range parts {
		if p.File == nil {
			return agent.Errorf(agent.CodeChunkMissing, "a file of the flow's input is not kept: %s; name the files of the new input", p.Text).WithPath("files")
		}
	}
	return nil
}

// Session returns the id of the session in which the run will be.
func (a *PreparedRun) Session() string { return a.session }

// Agent returns the name of the run's agent.
func (a *PreparedRun) Agent() string { return a.start.Agent }

// Fork prepares a run that begins at a checkpoint of a session, whichever run made it.
// The old run stays as it is.
//
// Errors are those of [Client.Transcript], and [agent.CodeNotFound] if the session does
// not have the checkpoint, for example because it is another session's. A live session
// can only be forked into a new one, else the error is [agent.CodeBusy]; so can a sub-agent's, else
// it is [agent.CodeInvalidInput]. If the new session exists already, it is that, too.
func (c *Client) Fork(ctx context.Context, session string, o *ForkOptions) (*PreparedRun, error) {
	if o == nil {
		o = &ForkOptions{}
	}
	view, err := c.keptView(ctx, session)
	if err != nil {
		return nil, err
	}
	point, replaced, err := forkPoint(view, session, *o)
	if err != nil {
		return nil, err
	}
	from := &agent.StartFrom{Checkpoint: point.ID, DropArtifacts: o.DropArtifacts}
	if err := redo(view, point, from, *o); err != nil {
		return nil, fmt.Errorf("forking session %s: %w", session, err)
	}
	target := session
	if o.NewSession {
		from.Session = session
		if target, err = c.newSession(ctx, o.Session); err != nil {
			return nil, err
		}
	} else if err := ownStarts(session); err != nil {
		return nil, err
	} else if err := c.checkNoOpenRun(ctx, session); err != nil {
		return nil, err
	}
	return c.prepareRun(view, point, replaced, target, from, *o)
}

// ownStarts returns an error if a session is a sub-agent's: only the agent that delegates starts runs in it.
func ownStarts(session string) error {
	if strings.Contains(session, "/") {
		return agent.Errorf(agent.CodeInvalidInput, "session %s is a sub-agent's, and only the agent that delegates to it starts runs there; fork it into a new session", session).WithPath("session")
	}
	return nil
}

// keptView returns a session's log. The log of a stateless run is no session's.
func (c *Client) keptView(ctx context.Context, session string) (*store.View, error) {
	view, err := c.view(ctx, session)
	if err == nil && view.Spec() != nil && view.Spec().Stateless {
		err = noSession(session)
	}
	return view, err
}

// forkPoint returns the checkpoint, and the message that an edit replaces.
func forkPoint(view *store.View, session string, o ForkOptions) (point agent.Checkpoint, replaced agent.Message, err error) {
	point, err = find(view, session, o.Checkpoint)
	if err == nil && o.Start {
		point, err = journal.First(view, session, point.Run)
	}
	if err == nil && o.Edit {
		point, replaced, err = edited(view, session, point)
	}
	if err != nil {
		return point, replaced, fmt.Errorf("forking session %s: %w", session, err)
	}
	return point, replaced, nil
}

// edited returns the checkpoint at which a run with an edited message begins, and the message. A
// flow's message is its input, which is replaced at any checkpoint.
func edited(view *store.View, session string, point agent.Checkpoint) (agent.Checkpoint, agent.Message, error) {
	if at := view.UpTo(point.Seq()); journal.IsFlow(at) {
		return point, journal.FlowInput(at), nil
	}
	return journal.BeforeLastMessage(view, session, point)
}

// newSession returns the id of a session that does not exist yet: the given one, or a new
// id.
func (c *Client) newSession(ctx context.Context, named string) (string, error) {
	if named == "" {
		return uuid.Must(uuid.NewV7()).String(), nil
	}
	_, err := c.last(ctx, named)
	if errors.Is(err, agent.CodeNotFound) { // Temporal may have forgotten it
		_, err = c.log.Head(ctx, named)
	}
	switch {
	case errors.Is(err, agent.CodeNotFound):
		return named, nil
	case err == nil:
		err = agent.Errorf(agent.CodeInvalidInput, "session %s exists; name another one for the fork", named).WithPath("session")
	}
	return "", err
}

// checkNoOpenRun returns [agent.CodeBusy] if a session has a live run.
func (c *Client) checkNoOpenRun(ctx context.Context, session string) error {
	info, err := c.last(ctx, session)
	if errors.Is(err, agent.CodeNotFound) {
		return nil // Temporal has forgotten it
	}
	if err == nil && !durable.Closed(info) {
		err = agent.Errorf(agent.CodeBusy, "session %s has a live run (%s); stop it first, or fork into a new session", session, info.GetFirstRunId())
	}
	return err
}

// Retry prepares a run that replaces a session's last run, which has failed. It begins
// where the failed run stood. If the run has not failed, the error is [agent.CodeStale]. A sub-agent's
// run is its parent's to retry: [agent.CodeInvalidInput].
func (c *Client) Retry(ctx context.Context, session string, o *ForkOptions) (*PreparedRun, error) {
	if o == nil {
		o = &ForkOptions{}
	}
	if o.NewSession || o.Session != "" {
		return nil, agent.Errorf(agent.CodeInvalidInput, "a retry stays in its session; fork to begin another").WithPath("session")
	}
	if err := ownStarts(session); err != nil {
		return nil, err
	}
	view, err := c.keptView(ctx, session)
	if err != nil {
		return nil, err
	}
	last, err := journal.Run(view.Events(), "")
	if err != nil {
		return nil, err
	}
	if err := c.hasFailed(ctx, session, last); err != nil {
		return nil, err
	}
	point, replaced, err := retryPoint(view, session, last.Run, *o)
	if err != nil {
		return nil, err
	}
	from := &agent.StartFrom{Checkpoint: point.ID, Retry: last.Run, DropArtifacts: o.DropArtifacts}
	if err := redo(view, point, from, *o); err != nil {
		return nil, fmt.Errorf("retrying run %s of session %s: %w", last.Run, session, err)
	}
	return c.prepareRun(view, point, replaced, session, from, *o)
}

// redo says which results of a flow a start does not take over. Each path must have one.
func redo(view *store.View, point agent.Checkpoint, from *agent.StartFrom, o ForkOptions) error {
	at := view.UpTo(point.Seq())
	if !journal.IsFlow(at) {
		if len(o.Redo) > 0 {
			return agent.Errorf(agent.CodeInvalidInput, "only steps of a flow can be made again, and agent %s is none; fork at a checkpoint before the call", point.Agent).WithPath("redo")
		}
		return nil
	}
	from.Redo, from.ReplaceInput = o.Redo, o.Edit
	steps := journal.Steps(at)
	for _, path := range o.Redo {
		one := agent.Forked{Redo: []string{path}}
		if !slices.ContainsFunc(steps, func(s agent.StepRecord) bool { return one.Redoes(s.Path) }) {
			return agent.Errorf(agent.CodeNotFound, "the flow has no step %q before %s; its steps are: %s", path, point.ID, pathsOf(steps)).WithPath("redo")
		}
	}
	return nil
}

// pathsOf names some steps.
func pathsOf(steps []agent.StepRecord) string {
	const most = 20
	var names []string
	for i, s := range steps {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(steps)-most))
			break
		}
		names = append(names, s.Path)
	}
	return strings.Join(names, ", ")
}

// hasFailed returns [agent.CodeStale] if a run has not failed. The log does not know the
// end of a run that was terminated or could not store its end, but Temporal does. The
// next run writes that end into the log.
func (c *Client) hasFailed(ctx context.Context, session string, last agent.RunRecord) error {
	status, todo := last.Status, "fork it instead"
	if !status.Ended() && c.temporal != nil {
		switch info, err := c.last(ctx, session); {
		case errors.Is(err, agent.CodeNotFound):
			todo = "Temporal knows nothing of it any more, so fork it instead"
		case err != nil:
			return err
		case info.GetFirstRunId() != last.Run:
			return agent.Errorf(agent.CodeStale, "the last run of session %s is %s, and the log has nothing of it; send a message, or fork run %s", session, info.GetFirstRunId(), last.Run)
		case !durable.Closed(info):
			todo = "end it first (stop or cancel), or fork into a new session"
		default:
			status = durable.ClosedStatus(info)
		}
	}
	if status == agent.StatusFailed {
		return nil
	}
	return agent.Errorf(agent.CodeStale, "run %s of session %s has not failed, it is %s: only a failed run can be retried; %s", last.Run, session, status, todo)
}

func retryPoint(view *store.View, session, run string, o ForkOptions) (point agent.Checkpoint, replaced agent.Message, err error) {
	switch {
	case o.Start && o.Text != "": // Text replaces the run's own message
		point, err = journal.Before(view, session, run)
	case o.Start:
		point, err = journal.First(view, session, run)
	case o.Checkpoint == "":
		point, err = journal.Last(view, session, run)
	default:
		point, err = find(view, session, o.Checkpoint)
	}
	if err == nil && o.Edit && !o.Start {
		point, replaced, err = edited(view, session, point)
	}
	if err != nil {
		return point, replaced, fmt.Errorf("retrying run %s of session %s: %w", run, session, err)
	}
	return point, replaced, nil
}

// prepareRun checks that the checkpoint and the options fit together, and makes the
// start.
func (c *Client) prepareRun(view *store.View, point agent.Checkpoint, replaced agent.Message, session string, from *agent.StartFrom, o ForkOptions) (*PreparedRun, error) {
	name := o.Agent
	if name == "" {
		name = point.Agent
	}
	if name == "" { // the session's beginning has none
		first, err := journal.Run(view.Events(), "")
		if err != nil {
			return nil, err
		}
		name = first.Agent
	}
	if len(o.Files) > 0 && !o.Edit && journal.IsFlow(view.UpTo(point.Seq())) {
		return nil, agent.Errorf(agent.CodeInvalidInput, "a flow takes files only with its start: edit its input to fork it with other files").WithPath("files")
	}
	if o.Text == "" && (o.Edit || len(o.Files) == 0 && !journal.NeedsReply(view, point)) {
		return nil, agent.Errorf(agent.CodeInvalidInput, "at %s the model has nothing to answer, so that a message is needed", point.ID).WithPath("input")
	}
	start := agent.Start{
		V: agent.Version, Agent: name, Input: agent.Input{Text: o.Text}, By: o.By, Limits: o.Limits, Labels: o.Labels, From: from,
	}
	if err := check(session, start); err != nil {
		return nil, err
	}
	if err := o.EndWith.check(); err != nil {
		return nil, fmt.Errorf("start refused: %w", err)
	}
	forked := agent.Forked{Retry: from.Retry != "", Redo: from.Redo, ReplaceInput: from.ReplaceInput}
	return &PreparedRun{ForkPlan: journal.ForkPlan(view, point, forked, name), client: c, session: session, start: start, kept: fileParts(replaced), files: o.Files, endWith: o.EndWith}, nil
}
