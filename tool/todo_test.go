package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/tool"
)

func todo(t *testing.T, h *toolcall.Hooks, arguments string) (string, error) {
	t.Helper()
	require.NoError(t, tool.Todo().Err())
	return tool.Todo().Call(t.Context(), tool.Call{Arguments: json.RawMessage(arguments)}.With(h))
}

func TestTodo(t *testing.T) {
	h := &toolcall.Hooks{}
	text, err := todo(t, h, `{}`)
	require.NoError(t, err)
	require.Equal(t, "The list is empty.", text)
	require.Empty(t, h.StateChanges, "a look sets nothing")

	text, err = todo(t, h, `{"items":[{"text":"read\n the  code","state":"done"},{"text":"change it","state":"in_progress"},{"text":"test it"}]}`)
	require.NoError(t, err)
	require.Equal(t, "1 of 3 done:\n[x] read the code\n[>] change it\n[ ] test it", text)
	again, err := todo(t, h, `{}`)
	require.NoError(t, err)
	require.Equal(t, text, again)

	before := string(h.StateChanges[agent.TodoKey])
	for wrong, why := range map[string]string{
		`{"items":[{"text":" "}]}`:                                             "items[0].text is blank",
		`{"items":[{"text":"a","state":"nearly"}]}`:                            "pending, in_progress or done",
		`{"items":[{"text":"` + strings.Repeat("a", 501) + `"}]}`:              "at most 500",
		`{"items":[` + strings.Repeat(`{"text":"a"},`, 100) + `{"text":"a"}]}`: "at most 100",
	} {
		_, err := todo(t, h, wrong)
		require.ErrorIs(t, err, agent.CodeDenied)
		require.ErrorContains(t, err, why)
	}
	require.Equal(t, before, string(h.StateChanges[agent.TodoKey]), "a refused list changes nothing")

	text, err = todo(t, h, `{"items":[]}`)
	require.NoError(t, err)
	require.Equal(t, "The list is empty.", text)
	require.JSONEq(t, "null", string(h.StateChanges[agent.TodoKey]))
}
