package agent

import "strings"

// TemporalCall is a call of what the Temporal namespace already has: the tool has no
// function, and the run's workflow makes the call. Make such a tool with tool.Activity,
// tool.Workflow or tool.Nexus. The zero value is invalid.
type TemporalCall struct {
	Kind TemporalKind `json:"kind"`
	// Type is the type of the activity or workflow, or the Nexus operation.
	Type string `json:"type"`
	// TaskQueue is where the activity's or workflow's workers poll; empty for Nexus.
	TaskQueue string `json:"task_queue,omitempty"`
	// Endpoint and Service say where a Nexus operation is; empty otherwise.
	Endpoint string `json:"endpoint,omitempty"`
	Service  string `json:"service,omitempty"`
	// StartTimeout is how long an activity may wait for a worker; zero means 1h.
	StartTimeout Duration `json:"start_timeout,omitempty"`
	// Heartbeat is how long an activity may send no heartbeat; zero means that none is
	// expected, and then it learns of no cancellation.
	Heartbeat Duration `json:"heartbeat,omitempty"`
	// NonRetryable are the error types after which an activity is not tried again.
	NonRetryable []string `json:"non_retryable,omitempty"`
}

// TemporalKind says what a [TemporalCall] calls.
type TemporalKind string

// The kinds.
const (
	TemporalActivity TemporalKind = "activity"
	TemporalWorkflow TemporalKind = "workflow"
	TemporalNexus    TemporalKind = "nexus"
)

// maxTemporalName bounds each name in a [TemporalCall], in bytes, and maxNonRetryable the
// number of error types. The server would fail the workflow task of a run for a longer
// name.
const (
	maxTemporalName = 200
	maxNonRetryable = 16
)

// Check returns what is wrong with the call, as [CodeInvalidInput]; nil if nothing is.
func (t TemporalCall) Check() error {
	type part struct{ what, name string }
	var needed []part
	switch t.Kind {
	case TemporalActivity, TemporalWorkflow:
		needed = []part{{"a type", t.Type}, {"a task queue", t.TaskQueue}}
	case TemporalNexus:
		needed = []part{{"an endpoint", t.Endpoint}, {"a service", t.Service}, {"an operation", t.Type}}
	default:
		return Errorf(CodeInvalidInput, "%q is neither activity, workflow nor nexus", t.Kind)
	}
	for _, p := range needed {
		if strings.TrimSpace(p.name) == "" {
			return Errorf(CodeInvalidInput, "the call of the %s needs %s", t.Kind, p.what)
		}
	}
	for _, name := range append([]string{t.Type, t.TaskQueue, t.Endpoint, t.Service}, t.NonRetryable...) {
		if len(name) > maxTemporalName {
			return Errorf(CodeInvalidInput, "%.40q… has %d bytes; a name in a call may have %d", name, len(name), maxTemporalName)
		}
	}
	if len(t.NonRetryable) > maxNonRetryable {
		return Errorf(CodeInvalidInput, "%d error types are given, and at most %d are taken", len(t.NonRetryable), maxNonRetryable)
	}
	if t.StartTimeout < 0 || t.Heartbeat < 0 {
		return Errorf(CodeInvalidInput, "timeouts must be positive")
	}
	return nil
}

// String names what is called, such as "activity ChargeCard on task queue payments".
func (t TemporalCall) String() string {
	if t.Kind == TemporalNexus {
		return "operation " + t.Type + " of service " + t.Service + " at Nexus endpoint " + t.Endpoint
	}
	return string(t.Kind) + " " + t.Type + " on task queue " + t.TaskQueue
}
