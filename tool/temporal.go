package tool

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// ActivityTarget names an activity of your own workers. Type and TaskQueue are required.
type ActivityTarget struct {
	// Type is the activity's type, as its worker has registered it.
	Type string
	// TaskQueue is the queue that its workers poll, in the namespace of the runs.
	TaskQueue string
	// StartTimeout is how long a call may wait for a worker; zero means 1h. Then it has
	// failed, and the error names the queue.
	StartTimeout time.Duration
	// Heartbeat is how long the activity may send no heartbeat. With zero a lost worker is
	// noticed only at Options.Timeout. An activity without heartbeats is not cancelled.
	Heartbeat time.Duration
	// NonRetryable are the error types after which no further attempt is made, whatever
	// Options.Attempts says.
	NonRetryable []string
}

// Activity returns a tool that is one of your own Temporal activities. The run's workflow
// schedules it, with the arguments as its one argument; In gives them their schema, as in
// [New]. The model gets the activity's result: a string as it is, any other as JSON. An
// error of the type "denied" is a refusal, as [Refuse] is.
//
// Options.Timeout bounds one attempt, and Options.Attempts is the number of attempts of
// its retry policy. Options.Local is refused.
func Activity[In any](name, description string, to ActivityTarget, o *Options) Tool {
	return called[In](name, description, agent.TemporalCall{
		Kind: agent.TemporalActivity, Type: to.Type, TaskQueue: to.TaskQueue,
		StartTimeout: agent.Duration(to.StartTimeout), Heartbeat: agent.Duration(to.Heartbeat), NonRetryable: to.NonRetryable,
	}, o)
}

// WorkflowTarget names a workflow of your own workers. Both fields are required.
type WorkflowTarget struct {
	// Type is the workflow's type, as its worker has registered it.
	Type string
	// TaskQueue is the queue that its workers poll, in the namespace of the runs.
	TaskQueue string
}

// Workflow returns a tool that is one of your own Temporal workflows. It runs as a child of
// the run's workflow, and is cancelled with the call. Its ID is the call's idempotency key.
// If a workflow of that ID runs or has completed, the call takes that one's result. Arguments
// and results are as in [Activity].
//
// Options.Timeout bounds the workflow with its retries; zero means 24h.
func Workflow[In any](name, description string, to WorkflowTarget, o *Options) Tool {
	return called[In](name, description, agent.TemporalCall{Kind: agent.TemporalWorkflow, Type: to.Type, TaskQueue: to.TaskQueue}, o)
}

// NexusTarget names an operation of a Nexus endpoint. All fields are required.
type NexusTarget struct {
	Endpoint, Service, Operation string
}

// Nexus returns a tool that is an operation of a Nexus service, such as one of another
// namespace. A small workflow of Fermata's, fermata.nexus, makes the call as a child of the
// run. Arguments and results are as in [Activity].
//
// Options.Timeout bounds the operation with its retries; zero means 24h. Options.Attempts
// above 1 means that a call with an unknown outcome may be made again; the server itself
// decides how often it tries to reach the service.
func Nexus[In any](name, description string, to NexusTarget, o *Options) Tool {
	return called[In](name, description, agent.TemporalCall{Kind: agent.TemporalNexus, Type: to.Operation, Endpoint: to.Endpoint, Service: to.Service}, o)
}

// called returns a tool that the run's workflow calls. Its function is called only by
// whoever calls it without a run.
func called[In any](name, description string, to agent.TemporalCall, o *Options) Tool {
	t := New(name, description, func(context.Context, *Call, In) (string, error) {
		return "", Refuse("%s can be called only in a run, by its workflow", to)
	}, o)
	err := to.Check()
	if o != nil && o.Local {
		err = errors.New("what Temporal calls is never local")
	}
	if err != nil && t.err == nil {
		t.err = agent.Errorf(agent.CodeInvalidInput, "tool %q: %w", name, err).WithPath("tools")
	}
	t.spec.Temporal = &to
	return t
}
