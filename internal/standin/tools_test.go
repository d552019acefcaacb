package standin_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
)

// A tool's schema becomes one that every provider takes, and an ordinary one stays as
// it was written.
func TestPlainTool(t *testing.T) {
	want := map[string]string{
		"either":      `{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"}}}`,
		"exactly_one": `{"properties":{"a":{"type":"string"},"kind":{"anyOf":[{"const":"a"},{"const":"b"}]},"b":{"type":"string"}},"required":["kind"],"type":"object"}`,
		"all":         `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"]}`,
		"reference":   `{"type":"object","properties":{"x":{"type":"integer","description":"which x","default":1}}}`,
		"recursion":   `{"type":"object","properties":{"next":{"type":"object","properties":{"next":{"type":"object"}},"description":"the next one"}}}`,
		"list":        `{"type":"object","properties":{"all":{"type":"array","items":{}},"any":{}}}`,
		"old":         `{"type":"object"}`,
	}
	said := map[string]bool{"either": true, "exactly_one": true, "all": true, "recursion": true, "old": true}
	for _, tool := range standin.OddTools {
		plain := model.PlainTool(tool)
		require.Equal(t, want[tool.Name], string(plain.Input), tool.Name)
		require.Empty(t, standin.Faults(plain.Input), tool.Name)
		require.Equal(t, said[tool.Name], plain.Description != tool.Description, tool.Name)
	}
	for _, written := range []string{``, `{}`, `{`, "{\"type\": \"object\",\n\"properties\":{\"a\":{\"pattern\":\"x\",\"default\":1}}, \"additionalProperties\":false}"} {
		tool := agent.ToolSpec{Name: "f", Input: json.RawMessage(written)}
		if written == `{}` {
			tool.Input = json.RawMessage(`{"type":"object"}`)
		}
		require.Equal(t, tool, model.PlainTool(tool))
	}
}
