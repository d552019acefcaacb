package flow

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// ActivityOptions say where an activity is and how it is called. TaskQueue is required.
type ActivityOptions struct {
	// StepOptions are as for other steps: an empty Name means the activity's type, Timeout
	// bounds one attempt, and Attempts is the number of attempts of the retry policy.
	StepOptions
	// TaskQueue is the queue that the activity's workers poll, in the namespace of the runs.
	TaskQueue string
	// StartTimeout is how long the call may wait for a worker; zero means 1h. Then the step
	// has failed, and the error names the queue.
	StartTimeout time.Duration
	// Heartbeat is how long the activity may send no heartbeat. With zero a lost worker is
	// noticed only at Timeout. An activity without heartbeats is not cancelled.
	Heartbeat time.Duration
	// NonRetryable are the error types after which no further attempt is made.
	NonRetryable []string
}

// Activity calls an activity of your own Temporal workers, by its type. The run's workflow
// schedules it with in as its one argument, as JSON; nil means no argument. The result is read
// as JSON, or is the activity's text if Out is a string. The error is a [StepError] if the
// activity did not succeed.
func Activity[Out any](c Context, kind string, in any, o *ActivityOptions) (out Out, err error) {
	if o == nil {
		o = &ActivityOptions{}
	}
	return temporal[Out](c, in, &o.StepOptions, agent.TemporalCall{
		Kind: agent.TemporalActivity, Type: kind, TaskQueue: o.TaskQueue, StartTimeout: agent.Duration(o.StartTimeout), Heartbeat: agent.Duration(o.Heartbeat), NonRetryable: o.NonRetryable,
	})
}

// WorkflowOptions say where a workflow is and how it is called. TaskQueue is required.
type WorkflowOptions struct {
	// StepOptions are as for other steps: an empty Name means the workflow's type, and Timeout
	// bounds the workflow with its retries; zero means 24h.
	StepOptions
	// TaskQueue is the queue that the workflow's workers poll, in the namespace of the runs.
	TaskQueue string
}

// Workflow calls a workflow of your own Temporal workers, by its type, as a child of the
// run's workflow. Its ID is the step's idempotency key. If a workflow of that ID runs or has
// completed, as after an interrupt, the step takes that one's result. Arguments, result and
// error are as in [Activity].
func Workflow[Out any](c Context, kind string, in any, o *WorkflowOptions) (out Out, err error) {
	if o == nil {
		o = &WorkflowOptions{}
	}
	return temporal[Out](c, in, &o.StepOptions, agent.TemporalCall{Kind: agent.TemporalWorkflow, Type: kind, TaskQueue: o.TaskQueue})
}

func temporal[Out any](c Context, in any, o *StepOptions, to agent.TemporalCall) (out Out, err error) {
	if err := to.Check(); err != nil {
		return out, err
	}
	s, err := call(agent.TemporalTool, in, o)
	if err != nil {
		return out, err
	}
	s.Temporal = &to
	r, err := c.step(or(o.Name, to.Type), s)
	if err != nil {
		return out, err
	}
	return decodeStep[Out](r, r.Text)
}
