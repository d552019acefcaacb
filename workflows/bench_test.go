package workflows_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	sdktest "go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/observers"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/workflows"
)

// bench is one agent in Temporal's test environment.
type bench struct {
	*sdktest.TestWorkflowEnvironment
	script *testsuite.Script
	acts   *activities.Activities
	later  []appointment
	// observers look on, from the next execution on.
	observers *observers.Set
	// between stands between the workflow and the environment; it may be nil.
	between interceptor.WorkerInterceptor
	// keys prove approvers, from the next execution on.
	keys signals.Keys
	// executions counts those after the first.
	executions int
}

func setup(t *testing.T, def agent.Definition, script *testsuite.Script, tools ...tool.Tool) *bench {
	t.Helper()
	b := &bench{script: script}
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	def.Name, def.Model = "tester", "script"
	spec := agent.Spec{V: 1, Definition: def.WithDefaults()}
	b.acts = &activities.Activities{
		Agents: map[string]activities.Agent{}, Model: func(name string) (activities.Model, error) { return activities.Model{Model: script, Name: name}, nil },
		Tools: map[string]tool.Tool{}, Log: store.NewLog(dir), LogCache: activities.NewLogCache(), InFlight: activities.NewInFlight(), Logger: slog.New(slog.DiscardHandler),
	}
	for _, tl := range tools {
		require.NoError(t, tl.Err())
		b.acts.Tools[tl.Spec().Name] = tl
		spec.Toolset = append(spec.Toolset, tl.Spec())
	}
	b.acts.Agents["tester"] = activities.Agent{Spec: spec}
	b.fresh()
	return b
}

// fresh makes an environment, which is good for one execution.
func (b *bench) fresh() {
	var suite sdktest.WorkflowTestSuite
	b.TestWorkflowEnvironment = suite.NewTestWorkflowEnvironment()
	b.acts.Register(b)
	shell := &workflows.Shell{LogCache: b.acts.LogCache, InFlight: b.acts.InFlight, Observers: b.observers, Keys: b.keys}
	chain := []interceptor.WorkerInterceptor{shell.Interceptor()}
	if b.between != nil {
		chain = append(chain, b.between)
	}
	b.SetWorkerOptions(worker.Options{Interceptors: chain})
	shell.Register(b)
}

// after does something when so much time has passed, in whichever execution.
func (b *bench) after(d time.Duration, do func()) {
	b.later = append(b.later, appointment{b.Now().Add(d), do})
}

type appointment struct {
	at time.Time
	do func()
}

// play executes a run, over all its executions.
func (b *bench) play(args ...*commonpb.Payload) {
	for {
		values := make([]any, 3)
		for i, p := range args {
			values[i] = converter.NewRawValue(p)
		}
		for _, l := range b.later {
			if d := l.at.Sub(b.Now()); d > 0 {
				b.RegisterDelayedCallback(l.do, d)
			}
		}
		b.ExecuteWorkflow(signals.WorkflowType, values...)
		var next *workflow.ContinueAsNewError
		if !errors.As(b.GetWorkflowError(), &next) {
			return
		}
		args = next.Input.GetPayloads()
		now := b.Now()
		b.fresh()
		b.SetStartTime(now)
		b.SetContinuedExecutionRunID("default-test-run-id") // of every execution in the SDK's environment
		b.executions++
	}
}

// run runs the agent to its end.
func (b *bench) run(t *testing.T, input string) *agent.Outcome {
	t.Helper()
	payload, err := converter.GetDefaultDataConverter().ToPayload(map[string]any{"agent": "tester", "input": map[string]any{"text": input}})
	require.NoError(t, err)
	b.play(payload)
	return b.outcome(t)
}

// outcome is how the run ended.
func (b *bench) outcome(t *testing.T) *agent.Outcome {
	t.Helper()
	require.True(t, b.IsWorkflowCompleted())
	var o agent.Outcome
	err := b.GetWorkflowResult(&o)
	var app *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	switch {
	case errors.As(err, &app):
		err = app.Details(&o)
	case errors.As(err, &cancelled):
		err = cancelled.Details(&o)
	}
	require.NoError(t, err)
	return &o
}
