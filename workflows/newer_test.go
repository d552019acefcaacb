package workflows_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
)

// A state that a newer build has carried over, with a member that this build does not know, fails the
// workflow task and not the run: the panic leaves the run to a build that knows the member. A build that
// read the rest would lose what the member says.
func TestAStateThatThisBuildDoesNotKnowStopsTheTask(t *testing.T) {
	def := agent.Definition{Tools: []string{agent.AskUserTool}}
	asks := testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Where to?"}}}}
	b := setup(t, def, testsuite.NewScript(asks))
	payload, err := converter.GetDefaultDataConverter().ToPayload(map[string]any{"agent": "tester", "input": map[string]any{"text": "go"}})
	require.NoError(t, err)
	b.ExecuteWorkflow(signals.WorkflowType, converter.NewRawValue(payload), nil, nil)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, b.GetWorkflowError(), &next, "a run that stays suspended continues as new")
	carried := next.Input.GetPayloads()
	carried[1].Data = append([]byte(`{"later":1,`), bytes.TrimPrefix(carried[1].Data, []byte("{"))...)
	b.fresh()
	b.SetContinuedExecutionRunID("default-test-run-id")
	b.ExecuteWorkflow(signals.WorkflowType, converter.NewRawValue(carried[0]), converter.NewRawValue(carried[1]), converter.NewRawValue(carried[2]))
	var failed *temporal.PanicError // Temporal fails the task for it, and tries it again
	require.ErrorAs(t, b.GetWorkflowError(), &failed)
	require.ErrorContains(t, failed, "the run's state can't be read by this build")
}

// So does the account of a day's limits, and what a parent of a newer build begins a run with.
func TestAnInputThatThisBuildDoesNotKnowStopsTheTask(t *testing.T) {
	raw := func(json string) converter.RawValue {
		return converter.NewRawValue(&commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: []byte(json)})
	}
	stops := func(b *bench, kind string, args ...any) {
		b.ExecuteWorkflow(kind, args...)
		var failed *temporal.PanicError
		require.ErrorAs(t, b.GetWorkflowError(), &failed)
		require.ErrorContains(t, failed, "can't be read by this build")
	}
	b := setup(t, agent.Definition{}, testsuite.NewScript())
	b.SetContinuedExecutionRunID("default-test-run-id")
	stops(b, signals.DailyType, raw(`{"day":"2026-11-21","later":1}`), raw(`{"from":"default-test-run-id"}`))

	b.fresh()
	b.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		return workflow.ExecuteChildWorkflow(ctx, signals.WorkflowType, raw(`{"agent":"tester","input":{"text":"go"}}`), nil, raw(`{"later":1}`)).Get(ctx, nil)
	}, workflow.RegisterOptions{Name: "parent"})
	b.ExecuteWorkflow("parent")
	require.ErrorContains(t, b.GetWorkflowError(), "can't be read by this build")
}
