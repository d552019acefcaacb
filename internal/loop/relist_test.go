package loop

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Tools that a source has changed during a call are those of the next turn; other
// sources' and the runtime's own stay.
func TestSourcesToolsChange(t *testing.T) {
	d := newDrive(t, agent.Spec{
		Definition: agent.Definition{Name: "a", Tools: []string{"ask_user", "echo"}},
		Toolset:    []agent.ToolSpec{{Name: "echo"}, {Name: "wiki__old"}, {Name: "wikis__stays"}},
	})
	d.asks(agent.ToolCall{Tool: "wiki__old", Arguments: json.RawMessage("{}")})
	d.step(Returned{
		Result:   agent.ToolResult{Call: d.state.Calls.List[0].ID, Tool: "wiki__old", Status: agent.CallOK, Text: "ok"},
		Relisted: &agent.Relisted{Source: "wiki", Tools: []agent.ToolSpec{{Name: "wiki__new", Description: "Finds.", Input: json.RawMessage(`{"type":"object"}`)}}},
	})
	for name, known := range map[string]bool{"echo": true, "ask_user": true, "wikis__stays": true, "wiki__new": true, "wiki__old": false} {
		_, ok := d.state.Spec.Tool(name)
		require.Equal(t, known, ok, name)
	}
	d.asks(agent.ToolCall{Tool: "wiki__new", Arguments: json.RawMessage("{}")})
	require.Equal(t, Active, d.state.Calls.List[0].State)
}
