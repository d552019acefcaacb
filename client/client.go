package client

import (
	"context"
	"errors"
	"fmt"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// Options configures a Client; nil means all defaults.
type Options struct {
	// TaskQueue is the Temporal task queue for new runs. Empty means "fermata"; for Send, Fork and
	// Retry it means the task queue of the session's last run, if Temporal knows that run.
	TaskQueue string
	// Store is the store in which the workers keep transcripts. Transcripts, events,
	// steps, files, Fork, Retry, Export, Import and Delete need it.
	Store store.Store
	// Live is the source of live events, see [EventsOptions]; nil means none. The
	// workers' options name its other end.
	Live live.Source
	// Traceparent returns the W3C traceparent of the caller's span for the context of a
	// start, or an empty string. The run's trace continues from it. Nil means none.
	// Module telemetry has one for OpenTelemetry.
	Traceparent func(context.Context) string
}

// ErrNoStore is the cause of an [agent.CodeNotSetUp] error of a client without a store.
var ErrNoStore = errors.New("it needs the store that the workers use, and there is none (client.Options.Store)")

// Client starts runs, sends verbs to them and reads sessions. It is safe for concurrent
// use.
type Client struct {
	temporal   client.Client
	taskQueue  string
	queueGiven bool // the options name the task queue
	log        *store.Log
	live       live.Source
	trace      func(context.Context) string
	gates      updateLimiter
	histories  histories
}

// New returns a client that uses a Temporal client. The caller closes the Temporal
// client. If the Temporal client is nil, only what the stored logs say can be read: [Client.Transcript],
// [Client.Runs], [Client.Files], [Client.Artifacts], [Client.File], [Client.Checkpoints],
// [Client.Checkpoint] and [Client.Diff], and the plans of [Client.Fork] and [Client.Retry]. Call
// nothing else then.
func New(c client.Client, o *Options) *Client {
	n := &Client{temporal: c, taskQueue: signals.TaskQueue, gates: newUpdateLimiter()}
	if o != nil && o.TaskQueue != "" {
		n.taskQueue, n.queueGiven = o.TaskQueue, true
	}
	if o != nil && o.Store != nil {
		n.log = store.NewLog(o.Store)
	}
	if o != nil {
		n.live, n.trace = o.Live, o.Traceparent
	}
	return n
}

// Get returns the session's last run, live or ended. If Temporal no longer knows the
// session, it returns the last run in the store (see [Options.Store]).
//
// Errors are [agent.CodeNotFound], [agent.CodeInvalidInput] if the id can't be a
// session's, and [agent.CodeStoreUnavailable] if the store does not answer.
func (c *Client) Get(ctx context.Context, session string) (*Run, error) {
	info, err := c.last(ctx, session)
	if errors.Is(err, agent.CodeNotFound) && c.log != nil {
		head, headErr := c.log.Head(ctx, session)
		if headErr == nil {
			return &Run{client: c, Session: session, ID: head.Run}, nil
		}
		if errors.Is(headErr, agent.CodeStoreUnavailable) {
			err = fmt.Errorf("session %s is not known to Temporal, and what is stored of it can't be read: %w", session, headErr)
		}
	}
	if err != nil {
		return nil, err
	}
	return &Run{client: c, Session: session, ID: info.GetFirstRunId()}, nil
}

// GetOwn is Get for callers from outside: only sessions of the client's task queue are there, and
// only as long as Temporal knows them. For all others the error is [agent.CodeNotFound].
func (c *Client) GetOwn(ctx context.Context, session string) (*Run, error) {
	info, err := c.last(ctx, session)
	if err == nil && info.GetTaskQueue() != c.taskQueue {
		err = agent.Errorf(agent.CodeNotFound, "session %s is one of the task queue %s, not of %s", session, info.GetTaskQueue(), c.taskQueue)
	}
	if err != nil {
		return nil, err
	}
	return &Run{client: c, Session: session, ID: info.GetFirstRunId()}, nil
}

// last returns Temporal's description of the session's last execution.
func (c *Client) last(ctx context.Context, session string) (*workflowpb.WorkflowExecutionInfo, error) {
	if err := checkPath(session); err != nil {
		return nil, err
	}
	if c.temporal == nil {
		return nil, agent.Errorf(agent.CodeNotFound, "looking for session %s: there is no server to ask", session)
	}
	info, err := c.describe(ctx, session, "")
	if err != nil {
		return nil, fmt.Errorf("looking for session %s: %w", session, err)
	}
	if info.GetType().GetName() != signals.WorkflowType {
		return nil, agent.Errorf(agent.CodeNotFound, "workflow %s is a %s, not a run of fermata", session, info.GetType().GetName())
	}
	return info, nil
}

// describe returns Temporal's description of an execution of a session; of the current one,
// if execution is empty.
func (c *Client) describe(ctx context.Context, session, execution string) (*workflowpb.WorkflowExecutionInfo, error) {
	d, err := c.temporal.DescribeWorkflowExecution(ctx, session, execution)
	return d.GetWorkflowExecutionInfo(), durable.FromRPC(err)
}
