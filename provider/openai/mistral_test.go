package openai_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
)

// Mistral, and vLLM's parser for its models, take ids of nine letters or digits only, and
// no user's message straight after a tool's.
func TestMistral(t *testing.T) {
	for name, roles := range map[string][]string{
		"mistral-large-latest":          {"user", "assistant", "tool", "tool", "assistant", "user"},
		"mistralai/Devstral-Small-2507": {"user", "assistant", "tool", "tool", "assistant", "user"},
		"llama":                         {"user", "assistant", "tool", "tool", "user"},
	} {
		m, s := serve(t, standin.Drip(wholeChat, 0))
		standin.Reply(t, m, &model.Request{Model: name, Messages: conversation[:4]})
		var in struct {
			Messages []struct {
				Role, Content string
				ToolCallID    string                `json:"tool_call_id"`
				ToolCalls     []struct{ ID string } `json:"tool_calls"`
			}
		}
		require.NoError(t, json.Unmarshal(s.Bodies[0], &in))
		var got []string
		nine := regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
		for _, msg := range in.Messages {
			got = append(got, msg.Role)
			for _, c := range msg.ToolCalls {
				require.Regexp(t, nine, c.ID)
			}
			if msg.ToolCallID != "" {
				require.Regexp(t, nine, msg.ToolCallID)
			}
		}
		require.Equal(t, roles, got, name)
	}
}

// Content may come as a list of parts, some of them thoughts.
func TestContentAsAList(t *testing.T) {
	want := &model.Reply{Parts: []agent.Part{thought("Hm, so.", ""), said("Hello there.")}, Finish: model.FinishStop, Usage: plainUsage}
	thinks := func(s string) string { return `[{"type":"thinking","thinking":[{"type":"text","text":"` + s + `"}]}]` }
	m, _ := serve(t, standin.Drip(stream(begin, chunk(`{"content":`+thinks("Hm, ")+`}`), chunk(`{"content":`+thinks("so.")+`}`),
		chunk(`{"content":[{"type":"text","text":"Hello"}]}`), text(" there."), because("stop"), counted, end), 0))
	reply, h := standin.Reply(t, m, ask("Hello"))
	standin.Same(t, "in pieces", reply, want, h)

	m, _ = serve(t, standin.Answer(200, "application/json", `{"choices":[{"index":0,"message":{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm, so."}]},
		{"type":"text","text":"Hello there."},{"type":"reference","reference_ids":[1]}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":25,"total_tokens":35}}`))
	reply, h = standin.Reply(t, m, ask("Hello"))
	standin.Same(t, "at once", reply, want, h)
}
