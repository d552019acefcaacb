package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
)

// A json.RawMessage takes any JSON: the tool of a check gets the arguments of calls as they are.
func TestAToolTakesRawJSON(t *testing.T) {
	look := tool.New("look", "looks at calls", func(_ context.Context, _ *tool.Call, p agent.ProposedCalls) (string, error) {
		return string(p.Calls[0].Arguments), nil
	}, nil)
	text, err := look.Call(t.Context(), &tool.Call{Arguments: json.RawMessage(`{"task":"go","turn":1,"calls":[{"id":"t1.1","tool":"add","arguments":{"a":[1]}}]}`)})
	require.NoError(t, err)
	require.Equal(t, `{"a":[1]}`, text)
}
