package agents

import (
	"crypto/rand"
	"errors"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/value"
	"github.com/fermata-agents/fermata/signals"
)

// Options say more of a run. Nil has the defaults.
type Options struct {
	// Session is the session that the run begins or continues. Empty means a new one: the
	// workflow's id, the agent's name and eight random characters, such as
	// "order-42-reviewer-k3x5q2ab". It is recorded, so a replay has the same.
	Session string `json:"session,omitempty"`
	// TaskQueue is the task queue of the workers that have the agent; empty means "fermata".
	TaskQueue string `json:"task_queue,omitempty"`
	// By says who starts the run; empty means "workflow:" and the workflow's id. It is logged,
	// and not authenticated.
	By string `json:"by,omitempty"`
	// Limits may lower the agent's own.
	Limits agent.Limits `json:"limits,omitzero"`
	// Labels are shown in listings; at most 16.
	Labels map[string]string `json:"labels,omitempty"`
	// Carry says what the run keeps of the session's conversation; empty means all of it.
	Carry agent.Carry `json:"carry,omitempty"`
	// ParentClosePolicy says what happens to a run that is open when the workflow closes or
	// continues as new. The zero value means REQUEST_CANCEL: nobody waits for the run any more,
	// so it ends and costs nothing, and its transcript is stored. With TERMINATE what is not
	// stored yet is lost.
	ParentClosePolicy enums.ParentClosePolicy `json:"parent_close_policy,omitempty"`
	// Priority is Temporal's priority of the run's activities and its fairness key; the zero
	// value means the workflow's own.
	Priority temporal.Priority `json:"priority,omitzero"`
}

// Run is an agent's run below a workflow. Make one with [Start]. Only code of that workflow can
// use it.
type Run[Out any] struct {
	// Session is the run's session. With it, a client outside reads, holds and answers the run.
	Session string

	name  string
	done  workflow.Future
	child workflow.ChildWorkflowFuture // done, unless err is set
	err   error                        // why no run was started
}

// Execute runs an agent or a flow below the workflow and waits for its end. It is [Start] and
// [Run.Result] in one call.
func Execute[Out any](ctx workflow.Context, name string, task any, o *Options) (Out, error) {
	return Start[Out](ctx, name, task, o).Result(ctx)
}

// Start starts a run of an agent or a flow, as a child of the workflow, and does not wait for
// anything. The task is a text, or any value that becomes JSON. If the context is cancelled, the
// run and all runs below it are cancelled, and [Run.Result] returns when they have ended.
//
// What is wrong with a start is the error of [Run.Result].
func Start[Out any](ctx workflow.Context, name string, task any, o *Options) *Run[Out] {
	if o == nil {
		o = &Options{}
	}
	r := &Run[Out]{Session: o.Session, name: name}
	if r.Session == "" {
		r.Session = newSession(ctx, name)
	}
	text, err := value.Text(task)
	if err != nil {
		r.err = agent.Errorf(agent.CodeInvalidInput, "starting agent %s: the task: %w", name, err)
		done, set := workflow.NewFuture(ctx)
		set.SetError(r.err)
		r.done = done
		return r
	}
	// Nothing is checked here: the run refuses what is wrong, by the build that it began with. A
	// check here could decide otherwise in a replay by a later build.
	start := agent.Start{V: agent.Version, Agent: name, Input: agent.Input{Text: text}, By: o.by(ctx), Limits: o.Limits, Labels: o.Labels, Carry: o.Carry}
	r.child = workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, o.child(ctx, r.Session, start)), signals.WorkflowType, start)
	r.done = r.child
	return r
}

func (o *Options) by(ctx workflow.Context) string {
	if o.By != "" {
		return o.By
	}
	return "workflow:" + workflow.GetInfo(ctx).WorkflowExecution.ID
}

// child returns the options of the child workflow.
func (o *Options) child(ctx workflow.Context, session string, start agent.Start) workflow.ChildWorkflowOptions {
	queue := o.TaskQueue
	if queue == "" {
		queue = signals.TaskQueue
	}
	policy := o.ParentClosePolicy
	if policy == enums.PARENT_CLOSE_POLICY_UNSPECIFIED {
		policy = enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL
	}
	as := signals.StartOptions(session, queue, start, workflow.Now(ctx))
	return workflow.ChildWorkflowOptions{
		WorkflowID: as.ID, TaskQueue: as.TaskQueue, WorkflowIDReusePolicy: as.WorkflowIDReusePolicy, StaticSummary: as.StaticSummary,
		TypedSearchAttributes: as.TypedSearchAttributes, Memo: as.Memo, Priority: o.Priority,
		ParentClosePolicy: policy,
		// Otherwise the future would be ready before the run has stored its end, and the
		// workflow could close while runs below still work.
		WaitForCancellation: true,
	}
}

// Lengths of a generated session's parts, in characters. A session has at most 100.
const (
	maxPrefix = 58
	randomLen = 8
)

// newSession returns the id of a new session. A counter would not do: a workflow that continues
// as new, is retried or is reset would count from the beginning, and meet its old sessions. The
// whole id is recorded, because a replay does not always know the workflow's id.
func newSession(ctx workflow.Context, name string) (session string) {
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	recorded := workflow.SideEffect(ctx, func(workflow.Context) any {
		return prefix(id) + "-" + name + "-" + strings.ToLower(rand.Text()[:randomLen])
	})
	if err := recorded.Get(&session); err != nil {
		panic(err) // the task fails: this worker can't read the payload
	}
	return session
}

// prefix returns the beginning of a workflow's id with the characters that a session may have.
func prefix(id string) string {
	id = strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == ':', c == '-':
			return c
		}
		return '-'
	}, id)
	id = strings.TrimLeft(id, "._:-") // a session begins with a letter or a digit
	if id == "" {
		id = "workflow"
	}
	return id[:min(len(id), maxPrefix)]
}

// Future is ready when the run has ended, for a workflow.Selector. Read the run's end by
// [Run.Result] or [Run.Outcome].
func (r *Run[Out]) Future() workflow.Future { return r.done }

// Result waits for the run's end and returns its result: the agent's last text if Out is a
// string. Otherwise it is read from the run's output or, if the agent has none, from that text as
// JSON.
//
// The error is a [RunError] if the run was not completed. errors.Is finds its code, such as
// [agent.CodeLimitCost], and temporal.IsCanceledError reports whether it was cancelled. The error
// is [agent.CodeBusy] if the session has a live run, and [agent.CodeIncompatible] if the result
// is no Out.
func (r *Run[Out]) Result(ctx workflow.Context) (out Out, err error) {
	o, err := r.wait(ctx)
	if err != nil {
		return out, err
	}
	text := o.Text
	if len(o.Output) > 0 && !value.IsText[Out]() {
		text = string(o.Output)
	}
	if out, err = value.Read[Out](text); err != nil {
		return out, agent.Errorf(agent.CodeIncompatible, "the result of agent %s, session %s: %w", r.name, r.Session, err)
	}
	return out, nil
}

// Outcome waits for the run's end and returns how it ended, also if it was not completed: with
// what it has used and, if it was stopped, with its handoff. The error says why it did not begin.
func (r *Run[Out]) Outcome(ctx workflow.Context) (agent.Outcome, error) {
	o, err := r.wait(ctx)
	if e := (*RunError)(nil); errors.As(err, &e) {
		return e.Outcome, nil
	}
	return o, err
}

func (r *Run[Out]) wait(ctx workflow.Context) (o agent.Outcome, err error) {
	if r.err != nil {
		return o, r.err
	}
	err = r.child.Get(ctx, &o)
	switch {
	case temporal.IsWorkflowExecutionAlreadyStartedError(err):
		return o, agent.Errorf(agent.CodeBusy, "starting agent %s: session %s has a live run, or its id is another workflow's; wait for its end, or name another session", r.name, r.Session)
	case err != nil:
		return o, r.failed(durable.OutcomeOf(err), err)
	case !o.OK():
		return o, r.failed(o, nil)
	}
	return o, nil
}

// Send sends a verb to the run, such as [agent.PauseCommand], [agent.ResumeCommand],
// [agent.StopCommand], [agent.SendCommand] or [agent.AnswerCommand]. It waits until the run has
// the verb, and not for what it does. A run that refuses a verb shows that in its status. A policy
// of the workers decides about the verb like about any signal.
//
// The error is [agent.CodeClosed] if the run has ended, or could not be started.
func (r *Run[Out]) Send(ctx workflow.Context, c agent.Command) error {
	if r.err != nil {
		return r.err
	}
	if err := r.child.SignalChildWorkflow(ctx, string(c.Verb()), c).Get(ctx, nil); err != nil {
		if temporal.IsCanceledError(err) {
			return err
		}
		return agent.Errorf(agent.CodeClosed, "%s refused: session %s: %w", c.Verb(), r.Session, err)
	}
	return nil
}
