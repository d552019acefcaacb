package azure_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/azure"
	"github.com/fermata-agents/fermata/provider/openai"
)

// The options of OpenAI's adapter reach it.
func TestOptions(t *testing.T) {
	bare(t)
	s := standin.Listen(t, http.HandlerFunc(answer))
	req := ask("mistral-large")
	req.Tools = []agent.ToolSpec{{Name: "now"}}
	req.Messages = append(req.Messages,
		agent.Message{Role: agent.RoleAssistant, ProviderModel: "azure/x", Parts: []agent.Part{{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: "a", ProviderID: "given-1", Tool: "now"}}}},
		agent.Message{Role: agent.RoleTool, Parts: []agent.Part{{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: "a", Tool: "now", Text: "12:00"}}}},
		agent.TextMessage(agent.RoleUser, "And now?"))
	o := azure.Options{
		Endpoint: s.URL, APIKey: "a-key-of-azure-0123", API: openai.ChatCompletions, MaxTokensField: openai.MaxTokens, NoStreamOptions: true,
		KeepCallIDs: true, ToolChoice: model.ToolChoiceRequired, ServiceTier: "flex",
	}
	standin.Reply(t, azure.New(&o), req)
	body := string(s.Bodies[0])
	for _, want := range []string{`"max_tokens":50`, `"tool_call_id":"given-1"`, `"tool_choice":"required"`, `"service_tier":"flex"`} {
		require.Contains(t, body, want)
	}
	require.NotContains(t, body, "stream_options")
	o.ServiceTier = "cheap"
	require.ErrorContains(t, o.Check(), "service_tier must be")
}
