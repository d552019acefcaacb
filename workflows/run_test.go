package workflows_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	sdktest "go.temporal.io/sdk/testsuite"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
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
	deeds  *activities.Deeds
}

func setup(t *testing.T, def agent.Definition, script *testsuite.Script, tools ...tool.Tool) *bench {
	t.Helper()
	var suite sdktest.WorkflowTestSuite
	b := &bench{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), script: script}
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	def.Name, def.Model = "tester", "script"
	spec := agent.Spec{V: 1, Definition: def.WithDefaults()}
	b.deeds = &activities.Deeds{
		Agents: map[string]activities.Agent{}, Models: map[string]activities.Model{"script": {Model: script, Name: "script"}},
		Tools: map[string]tool.Tool{}, Log: store.NewLog(dir), Tails: activities.NewTails(), Logger: slog.New(slog.DiscardHandler),
	}
	for _, tl := range tools {
		require.NoError(t, tl.Err())
		b.deeds.Tools[tl.Spec().Name] = tl
		spec.Toolset = append(spec.Toolset, tl.Spec())
	}
	b.deeds.Agents["tester"] = activities.Agent{Spec: spec}
	b.deeds.Register(b)
	(&workflows.Shell{Tails: b.deeds.Tails}).Register(b)
	return b
}

// run runs the agent to its end.
func (b *bench) run(t *testing.T, input string) *agent.Outcome {
	t.Helper()
	payload, err := converter.GetDefaultDataConverter().ToPayload(map[string]any{"agent": "tester", "input": map[string]any{"text": input}})
	require.NoError(t, err)
	b.ExecuteWorkflow(signals.WorkflowType, converter.NewRawValue(payload), nil)
	require.True(t, b.IsWorkflowCompleted())
	var o agent.Outcome
	err = b.GetWorkflowResult(&o)
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		err = app.Details(&o)
	}
	require.NoError(t, err)
	return &o
}

func TestToolThenText(t *testing.T) {
	add := tool.New("add", "adds", func(_ context.Context, _ *tool.Call, in struct{ A, B int }) (int, error) { return in.A + in.B, nil }, nil)
	script := testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "add", Arguments: map[string]any{"A": 1, "B": 2}}}},
		testsuite.Reply{Text: "It is 3."},
	)
	b := setup(t, agent.Definition{}, script, add)
	o := b.run(t, "What is 1+2?")
	require.Equal(t, agent.Completed, o.Status, "%+v", o.Error)
	require.Equal(t, "It is 3.", o.Text)
	require.Equal(t, 2, o.Turns)
	require.Equal(t, []agent.ToolCount{{Tool: "add", Calls: 1, OK: 1}}, o.Tools)
	last := script.Requests()[1]
	require.Equal(t, "3", last.Messages[2].Parts[0].Result.Text)
}
