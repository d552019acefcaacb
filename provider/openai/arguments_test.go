package openai_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/provider/openai"
)

// Arguments go back as the model wrote them, also when encoding/json had them meanwhile:
// a model that reads escapes for & would write them.
func TestArgumentsGoBackAsTheyWereWritten(t *testing.T) {
	const written = `{"command":"cd x && make > out"}`
	stored, err := json.Marshal(agent.ToolCall{ID: "t1.1", Tool: "now", Arguments: json.RawMessage(written)})
	require.NoError(t, err)
	for api, whole := range map[openai.API]string{openai.ChatCompletions: wholeChat, openai.Responses: wholeResponse} {
		var call agent.ToolCall
		require.NoError(t, json.Unmarshal(stored, &call))
		req := ask("Build it")
		req.Tools = []agent.ToolSpec{now}
		req.Messages = append(req.Messages,
			agent.Message{Role: agent.RoleAssistant, Parts: []agent.Part{{Type: agent.PartToolCall, Call: &call}}},
			agent.Message{Role: agent.RoleTool, Parts: []agent.Part{{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: "t1.1", Tool: "now", Text: "ok", Status: agent.CallOK}}}})
		s := standin.Listen(t, standin.Drip(whole, 0))
		standin.Reply(t, openai.New(&openai.Options{API: api, APIKey: key, BaseURL: s.URL + "/v1"}), req)
		var in struct {
			Messages []struct {
				Calls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
			}
			Input []struct{ Arguments string }
		}
		require.NoError(t, json.Unmarshal(s.Bodies[0], &in))
		var got []string
		for _, m := range in.Messages {
			for _, c := range m.Calls {
				got = append(got, c.Function.Arguments)
			}
		}
		for _, item := range in.Input {
			if item.Arguments != "" {
				got = append(got, item.Arguments)
			}
		}
		require.Equal(t, []string{written}, got)
	}
}
