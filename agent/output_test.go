package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// An output that the tool finish can't have as its arguments is refused with the agent.
func TestOutputOfTheToolFinish(t *testing.T) {
	def := agent.Definition{Name: "a", Model: "m/x", Completion: agent.CompletionTool, Output: json.RawMessage(`{"type":"array"}`)}
	require.ErrorIs(t, def.Check(), agent.CodeInvalidInput)
	def.Output = json.RawMessage(`{"type":"object"}`)
	require.NoError(t, def.Check())
	def.Completion, def.Output = agent.CompletionNatural, json.RawMessage(`{"type":"array"}`)
	require.NoError(t, def.Check())
}
