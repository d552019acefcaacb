package loop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// An outcome says how tools are called. The agent's option fixes it for all turns of a run (HA-27,
// HA-148).
func TestAnOutcomeSaysHowToolsAreCalled(t *testing.T) {
	for option, want := range map[string]agent.ToolsMode{
		"": agent.ToolsNative, "reject": agent.ToolsNative, "allow": agent.ToolsNativeAndText, "allow_once": agent.ToolsNativeAndText,
	} {
		p := played(t, "begin go", `opened {"toolset":[{"name":"add"}],"text_calls":"`+option+`"}`, "calls add {}", "result t1.1 ok 3", "says done")
		require.Equal(t, agent.StatusCompleted, p.state.End.Outcome.Status)
		require.Equal(t, want, p.state.End.Outcome.ToolsMode, option)
	}
}
