package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/w3ctrace"
	"github.com/fermata-agents/fermata/signals"
)

// StartOptions are optional; nil means all defaults.
type StartOptions struct {
	// Session is the id of the session to begin or to continue; empty means a new session
	// with a new id.
	Session string
	// ID identifies the start among the session's messages. A second run with the same id
	// fails with [agent.CodeStale], so the message counts once. Empty means a new id.
	ID string
	// By says who starts the run. It is logged, and not authenticated.
	By string
	// Parts are sent together with the text, or instead of it.
	Parts []agent.Part
	// Files are stored with the session, and sent after Parts; see [Client.PutFiles].
	Files []FileInput
	// Meta is the caller's JSON. The run keeps it, and reads only its traceparent. If it
	// is nil, the run uses the traceparent of [Options.Traceparent].
	Meta json.RawMessage
	// Limits may lower the agent's own.
	Limits agent.Limits
	// Labels are shown in listings; at most 16.
	Labels map[string]string
	// Carry says what the run keeps of the session's conversation; empty means all of it.
	Carry agent.Carry
	// Data is JSON input for the agent, together with the text or instead of it.
	Data []byte
	// Park makes the run wait before its first turn until the conditions are met; nil
	// means that it begins at once.
	Park *agent.Conditions
	// Briefing is the handoff of an earlier run. With it, the text may be empty.
	Briefing *agent.Handoff
	// Priority is Temporal's priority of the run's activities and its fairness key, so
	// that one tenant's activities cannot starve another's. All runs below the run have
	// the same priority. The runs that continue it by Send, Fork or Retry have it, too, as
	// long as Temporal knows the run. The zero value is the server's default.
	Priority temporal.Priority
	// Skills are names of the agent's skills that are active from the first turn on.
	Skills []string
	// WorkingFiles are paths of files that the task is about. They decide which skills match.
	WorkingFiles []string
	// Judge is asked whether the run's answer does what the text asks for, after the agent's own
	// checks; nil adds no check. A veto goes to the model, which continues until the judge accepts or
	// a limit ends the run: Judge: &agent.Judge{} is enough. What it said is in the outcome's report,
	// if the agent has one, and in the events check.done. Its model is the agent's own, one of its
	// fallbacks or one of its judges' models; any other ends the run with [agent.CodeDenied]. Its
	// reply has 8192 tokens at most.
	Judge *agent.Judge
	// EndWith ends the run with a context; nil means that no context ends it. If the
	// context is done already, Start fails with its error and no run begins. Start then
	// waits for the server's answer, at most 10 s, also if a context is done meanwhile.
	EndWith *EndWith
}

// Start starts a run of an agent. The text may be empty if Parts, Files, Data or Briefing
// say what to do. For a daemon it may be empty too: the daemon then works on waiting events, or
// becomes idle. Other runs with an empty text fail.
//
// Errors are [agent.CodeInvalidInput] before anything is sent, [agent.CodeBusy] if the
// session has a live run, [agent.CodeTimeout] if the server did not answer in time, and those
// of reaching it. After a timeout the run may have begun: the error's Session names where to
// look. If no worker has the agent, Start succeeds and the run fails.
func (c *Client) Start(ctx context.Context, name, text string, o *StartOptions) (*Run, error) {
	if o == nil {
		o = &StartOptions{}
	}
	if err := o.EndWith.check(); err != nil {
		return nil, fmt.Errorf("start refused: %w", err)
	}
	if err := o.EndWith.over(ctx); err != nil {
		return nil, err
	}
	start, session, fresh := o.Input(name, text), o.Session, o.Session == ""
	if fresh {
		session = uuid.Must(uuid.NewV7()).String() // a new id, so Temporal has no run of it
	} else if err := agent.CheckSession(session); err != nil {
		return nil, fmt.Errorf("start refused: %w", err)
	} else if info, err := c.last(ctx, session); err == nil {
		start.After = info.GetFirstRunId()
		if err := keepsSession(info); err != nil {
			return nil, fmt.Errorf("start refused: %w", err)
		}
	} else if !errors.Is(err, agent.CodeNotFound) {
		return nil, err
	}
	// As begin does, but before files are stored.
	if err := check(session, start); err != nil {
		return nil, err
	}
	if err := checkPriority(o.Priority); err != nil {
		return nil, err
	}
	files, err := c.PutFiles(ctx, session, o.Files...)
	if err != nil {
		return nil, fmt.Errorf("start refused: %w", err)
	}
	start.Input.Parts = slices.Concat(start.Input.Parts, files)
	return c.begin(ctx, session, start, predecessor{priority: o.Priority, taskQueue: c.taskQueue, fresh: fresh}, o.EndWith)
}

// Input returns the workflow's input for a start with these options (docs/wire.md §3), without
// Files: those are stored first, and named by Parts ([Client.PutFiles]). EndWith is nothing
// of the run's.
func (o *StartOptions) Input(name, text string) agent.Start {
	return agent.Start{
		V: agent.Version, Agent: name, Input: agent.Input{Text: text, Parts: o.Parts, Data: o.Data, Briefing: o.Briefing},
		ID: o.ID, By: o.By, Meta: o.Meta, Limits: o.Limits, Labels: o.Labels, Carry: o.Carry, Park: o.Park, Skills: o.Skills, WorkingFiles: o.WorkingFiles, Judge: o.Judge,
	}
}

// start starts a run that continues another one, with that run's priority and task queue.
func (c *Client) start(ctx context.Context, session string, start agent.Start, with *EndWith) (*Run, error) {
	from := session
	if start.From != nil && start.From.Session != "" {
		from = start.From.Session
	}
	before, err := c.predecessor(ctx, from)
	if err != nil {
		return nil, err
	}
	// After is the id of the same session's last run; a new session has none.
	if from == session {
		start.After = before.run
	}
	return c.begin(ctx, session, start, before, with)
}

// predecessor is what a new run has of the run that it continues.
type predecessor struct {
	run       string // empty if there is none
	priority  temporal.Priority
	taskQueue string
	fresh     bool // nobody else knows the session's id
}

// predecessor returns a session's last run. If Temporal does not know the session, it has the default
// priority, the client's task queue and no id.
func (c *Client) predecessor(ctx context.Context, session string) (predecessor, error) {
	info, err := c.last(ctx, session)
	if err != nil && !errors.Is(err, agent.CodeNotFound) {
		return predecessor{}, err
	}
	if err := keepsSession(info); err != nil {
		return predecessor{}, err
	}
	p, queue := info.GetPriority(), c.taskQueue
	// The workers of another task queue may not have the agent, or another one of its name.
	if last := info.GetTaskQueue(); last != "" && !c.queueGiven {
		queue = last
	}
	priority := temporal.Priority{PriorityKey: int(p.GetPriorityKey()), FairnessKey: p.GetFairnessKey(), FairnessWeight: p.GetFairnessWeight()}
	return predecessor{run: info.GetFirstRunId(), priority: priority, taskQueue: queue}, nil
}

// keepsSession returns a [agent.CodeInvalidInput] error if a run is of a stateless agent: it has no
// session that another run could continue, or that could be exported.
func keepsSession(info *workflowpb.WorkflowExecutionInfo) error {
	if !ReadMemo(info).Stateless {
		return nil
	}
	return noSession(info.GetExecution().GetWorkflowId())
}

func noSession(id string) error {
	return agent.Errorf(agent.CodeInvalidInput, "run %s is of a stateless agent, which keeps no session; start a new run without a session", id).WithPath("session")
}

// The server's limits of a priority.
const (
	maxFairnessKey    = 64 // bytes
	maxFairnessWeight = 1000
)

func checkPriority(p temporal.Priority) error {
	if p.PriorityKey < 0 || len(p.FairnessKey) > maxFairnessKey || p.FairnessWeight < 0 || p.FairnessWeight > maxFairnessWeight {
		return agent.Errorf(agent.CodeInvalidInput, "start refused: a priority is 1 (first) or more, a fairness key has at most %d bytes, and its weight is over 0 and at most %d", maxFairnessKey, maxFairnessWeight).WithPath("priority")
	}
	return nil
}

func (c *Client) begin(ctx context.Context, session string, start agent.Start, before predecessor, with *EndWith) (*Run, error) {
	start = c.traced(ctx, start)
	if err := check(session, start); err != nil {
		return nil, err
	}
	if err := checkPriority(before.priority); err != nil {
		return nil, err
	}
	o := startOptions(session, before, start)
	// Otherwise the SDK returns the live run as if it had just started.
	o.WorkflowIDConflictPolicy, o.WorkflowExecutionErrorWhenAlreadyStarted = enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL, true
	if f := start.From; f != nil && f.Retry != "" { // otherwise a run that has completed meanwhile could be retried
		o.WorkflowIDReusePolicy = enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
	}
	ctx, cancel, err := with.begins(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	run := &Run{client: c, Session: session}
	if run.ID, err = c.execute(ctx, o, start, before.fresh); err != nil {
		return nil, startFailed(session, start, err)
	}
	if with != nil {
		err = run.EndWith(*with)
	}
	return run, err
}

// execute starts a run's workflow. If the server does not answer in time, the run may have begun.
// In a session that nobody else knows the start is tried again then: what has its id already was
// begun by an earlier attempt.
func (c *Client) execute(ctx context.Context, o client.StartWorkflowOptions, start agent.Start, fresh bool) (run string, err error) {
	unanswered := false
	try := func() (string, error) {
		begun, err := c.temporal.ExecuteWorkflow(ctx, o, signals.WorkflowType, start)
		if fresh && errors.As(err, new(*serviceerror.WorkflowExecutionAlreadyStarted)) {
			unanswered = true
			info, err := c.describe(ctx, o.ID, "")
			return info.GetFirstRunId(), err
		}
		if err != nil {
			unanswered = unanswered || errors.Is(durable.FromRPC(err), agent.CodeTimeout)
			return "", err
		}
		return begun.GetRunID(), nil
	}
	if !fresh {
		return try()
	}
	o.WorkflowIDReusePolicy = enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	if run, err = durable.Thrice(ctx, try); err != nil && unanswered { // whatever the last attempt says
		return "", agent.Errorf(agent.CodeTimeout, "%s", err)
	}
	return run, err
}

// traced adds the caller's traceparent to a start that has no meta. An invalid
// traceparent is left out: a run must not fail because of its trace.
func (c *Client) traced(ctx context.Context, start agent.Start) agent.Start {
	if c.trace == nil || len(start.Meta) > 0 {
		return start
	}
	if parent := c.trace(ctx); w3ctrace.Valid(parent) {
		start.Meta = w3ctrace.Meta(parent)
	}
	return start
}

// startOptions returns the options of every start.
func startOptions(session string, before predecessor, start agent.Start) client.StartWorkflowOptions {
	o := signals.StartOptions(session, before.taskQueue, start, time.Now())
	o.Priority = before.priority
	return o
}

// check finds, before anything is sent, why the run would refuse the start.
func check(session string, start agent.Start) error {
	if err := agent.CheckSession(session); err != nil {
		return fmt.Errorf("start refused: %w", err)
	}
	raw, err := json.Marshal(start)
	if err != nil {
		return fmt.Errorf("start refused: %w", agent.Errorf(agent.CodeInvalidInput, "data is not JSON: %w", err).WithPath("input.data"))
	}
	if _, refusal := signals.DecodeStart(raw); refusal != nil {
		return refusal
	}
	return nil
}

func startFailed(session string, start agent.Start, err error) error {
	var live *serviceerror.WorkflowExecutionAlreadyStarted
	var invalid *serviceerror.InvalidArgument
	// For a retry, the reuse policy refuses too if another retry was faster and has
	// completed.
	switch {
	case errors.As(err, &live) && start.From != nil && start.From.Retry != "":
		e := agent.Errorf(agent.CodeBusy, "run %s of session %s is being retried, or was: run %s was quicker", start.From.Retry, session, live.RunId)
		e.Session, e.Run = session, live.RunId
		return e
	case errors.As(err, &live):
		e := agent.Errorf(agent.CodeBusy, "session %s has a live run (%s); wait for its end, or name another session", session, live.RunId)
		e.Session, e.Run = session, live.RunId
		return e
	case errors.As(err, &invalid):
		return agent.Errorf(agent.CodeNotSetUp, "starting a run: %w; does the namespace have fermata's search attributes? see fermata setup", err)
	}
	if err = durable.FromRPC(err); errors.Is(err, agent.CodeTimeout) {
		e := agent.Errorf(agent.CodeTimeout, "starting a run of session %s: %w: it may have begun; look before you start it again", session, err)
		e.Session = session
		return e
	}
	return fmt.Errorf("starting a run: %w", err)
}
