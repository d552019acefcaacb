package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// A call is required until the model has made one since the user's last words, so that a
// turn can end.
func TestToolChoice(t *testing.T) {
	user := agent.TextMessage(agent.RoleUser, "Hello")
	said := agent.TextMessage(agent.RoleAssistant, "Hm.")
	called := agent.Message{Role: agent.RoleAssistant, Parts: []agent.Part{{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: "c", Tool: "now"}}}}
	result := agent.Message{Role: agent.RoleTool, Parts: []agent.Part{{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: "c"}}}}
	for _, c := range []struct {
		messages []agent.Message
		want     bool
	}{
		{[]agent.Message{user}, true},
		{[]agent.Message{user, said, user}, true},
		{[]agent.Message{user, said}, true},
		{[]agent.Message{user, called, result}, false},
		{[]agent.Message{user, called, result, said, user}, true},
	} {
		req := &model.Request{Messages: c.messages, Tools: []agent.ToolSpec{{Name: "now"}}}
		require.Equal(t, c.want, model.ToolChoiceRequired.Requires(req))
		require.False(t, model.ToolChoiceAuto.Requires(req))
		require.False(t, model.ToolChoice("").Requires(req))
		req.NoCalls = true
		require.False(t, model.ToolChoiceRequired.Requires(req))
		require.False(t, model.ToolChoiceRequired.Requires(&model.Request{Messages: c.messages}), "there are no tools")
	}
	require.NoError(t, model.ToolChoiceRequired.Check())
	require.Equal(t, agent.CodeInvalidInput, agent.CodeOf(model.ToolChoice("now").Check()))
}
