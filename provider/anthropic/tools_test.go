package anthropic_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/standin"
)

// One tool with an odd schema does not make the provider refuse every request: the
// schema is rewritten, and what that loses stands in the tool's description.
func TestOddTools(t *testing.T) {
	m, s := serve(t, standin.Answer(200, "text/event-stream", whole))
	req := ask("Hello")
	req.Tools = standin.OddTools
	standin.Reply(t, m, req)
	var in struct {
		Tools []struct {
			Name, Description string
			Schema            json.RawMessage `json:"input_schema"`
		}
	}
	require.NoError(t, json.Unmarshal(s.Bodies[0], &in))
	list := in.Tools
	require.Len(t, list, len(standin.OddTools))
	for _, f := range list {
		require.Empty(t, standin.Faults(f.Schema), "%s: %s", f.Name, f.Schema)
	}
	require.JSONEq(t, `{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"}}}`, string(list[0].Schema))
	require.Contains(t, list[0].Description, string(standin.OddTools[0].Input))
}
