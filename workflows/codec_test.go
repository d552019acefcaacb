package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/testsuite"
)

// A run takes signals that a codec of the user's own has encoded. An execution that an earlier
// build has begun refuses them as that build did, so its history replays.
func TestSignalsUnderACodec(t *testing.T) {
	for _, c := range []struct {
		revision workflow.Version
		status   agent.Status
		refused  []string
	}{
		{loop.Revision, agent.StatusCompleted, nil},
		{loop.OldestRevision, agent.StatusCancelled, []string{"answer invalid_input"}},
	} {
		b := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(
			testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Which?"}}}},
			testsuite.Reply{Text: "done"},
		))
		b.SetDataConverter(converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true})))
		b.pins(c.revision)
		b.after(time.Minute, func() { b.signal("answer", `{"request":"q-1","text":"blue"}`) })
		b.after(2*time.Minute, b.CancelWorkflow)
		require.Equal(t, c.status, b.run(t, "go").Status)
		require.Equal(t, c.refused, b.refused(t))
	}
}
