package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// A run that an older build began decides by this build's revision from its next execution on: nothing
// that is carried over holds it to the older one.
func TestANewExecutionPinsTheRevisionOfItsBuild(t *testing.T) {
	for _, c := range []struct {
		revision workflow.Version // of the second execution
		status   agent.Status
	}{{loop.Revision, agent.StatusCompleted}, {loop.OldestRevision, agent.StatusCancelled}} {
		look := tool.New("look", "", func(context.Context, *tool.Call, none) (string, error) { return "seen", nil }, nil)
		b := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(
			testsuite.Reply{Calls: calls("look")},
			testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Which?"}}}},
			testsuite.Reply{Text: "done"},
		), look)
		b.pins(loop.OldestRevision)
		b.SetContinueAsNewSuggested(true)
		payload, err := converter.GetDefaultDataConverter().ToPayload(map[string]any{"agent": "tester", "input": map[string]any{"text": "go"}})
		require.NoError(t, err)
		b.ExecuteWorkflow(signals.WorkflowType, converter.NewRawValue(payload), nil, nil)
		var next *workflow.ContinueAsNewError
		require.ErrorAs(t, b.GetWorkflowError(), &next)

		now := b.Now()
		b.fresh()
		b.SetStartTime(now)
		b.SetContinuedExecutionRunID("default-test-run-id")
		if c.revision != loop.Revision {
			b.pins(c.revision)
		}
		// Only revision 2 takes a signal that a codec has encoded.
		b.SetDataConverter(converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true})))
		b.after(time.Minute, func() { b.signal("answer", `{"request":"q-1","text":"blue"}`) })
		b.after(2*time.Minute, b.CancelWorkflow)
		b.play(next.Input.GetPayloads()...)
		require.Equal(t, c.status, b.outcome(t).Status)
	}
}

// pins has the execution of this environment pin a revision.
func (b *bench) pins(revision workflow.Version) {
	b.OnGetVersion("fermata.revision", workflow.Version(loop.OldestRevision), workflow.Version(loop.Revision)).Return(revision)
}
