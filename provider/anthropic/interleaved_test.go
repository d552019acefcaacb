package anthropic_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
)

type wireBlock struct{ Type, Signature, ID, ToolUseID string }

func blocksOf(t *testing.T, body []byte) []wireBlock {
	t.Helper()
	var in struct {
		Messages []struct {
			Content []struct {
				Type, Signature, ID string
				ToolUseID           string `json:"tool_use_id"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(body, &in))
	var all []wireBlock
	for _, m := range in.Messages {
		for _, b := range m.Content {
			all = append(all, wireBlock{b.Type, b.Signature, b.ID, b.ToolUseID})
		}
	}
	return all
}

func called(id, providerID string) agent.Part {
	p := call(id, "now", "{}")
	p.Call.ProviderID = providerID
	return p
}

// Thinking between calls goes back whole, and the calls with the ids that the provider
// gave them: what stood before a thought is as it was.
func TestInterleavedThinking(t *testing.T) {
	m, s := serve(t, standin.Answer(200, "text/event-stream", whole))
	standin.Reply(t, m, &model.Request{
		Model: "claude-sonnet-5-5", Messages: []agent.Message{
			agent.TextMessage(agent.RoleUser, "Go."),
			assistant(sonnet, thought("One.", "b25l"), called("t1.1", "toolu_01A"), thought("Two.", "dHdv"), called("t1.2", "toolu_01B"), thought("Three, and nothing after it.", "dGhyZWU=")),
			{Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "now", agent.CallOK, "1"), result("t1.2", "now", agent.CallOK, "2")}},
		},
	})
	require.Equal(t, []wireBlock{
		{"text", "", "", ""},
		{"thinking", "b25l", "", ""}, {"tool_use", "", "toolu_01A", ""}, {"thinking", "dHdv", "", ""}, {"tool_use", "", "toolu_01B", ""},
		{"tool_result", "", "", "toolu_01A"}, {"tool_result", "", "", "toolu_01B"},
	}, blocksOf(t, s.Bodies[0]))
}

// Ids that are not the provider's, or stand in a conversation twice, can't go back: ours
// stand for them, and what was thought after such a call is left out.
func TestInterleavedThinkingWithoutIDs(t *testing.T) {
	for _, ids := range [][2]string{{"", ""}, {"toolu_01A", "toolu_01A"}, {"toolu_01A", "not one"}} {
		m, s := serve(t, standin.Answer(200, "text/event-stream", whole))
		standin.Reply(t, m, &model.Request{
			Model: "claude-sonnet-5-5", Messages: []agent.Message{
				agent.TextMessage(agent.RoleUser, "Go."),
				assistant(sonnet, thought("One.", "b25l"), called("t1.1", ids[0]), thought("Two.", "dHdv"), called("t1.2", ids[1])),
				{Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "now", agent.CallOK, "1"), result("t1.2", "now", agent.CallOK, "2")}},
			},
		})
		got := blocksOf(t, s.Bodies[0])
		require.Len(t, got, 6, "%v: %v", ids, got)
		require.Equal(t, []string{got[2].ID, got[3].ID}, []string{got[4].ToolUseID, got[5].ToolUseID})
		require.NotEqual(t, got[2].ID, got[3].ID)
	}
}

// A call that failed without a word is told as one: the provider refuses an error
// without content, in every later request.
func TestErrorWithoutText(t *testing.T) {
	m, s := serve(t, standin.Answer(200, "text/event-stream", whole))
	standin.Reply(t, m, &model.Request{
		Model: "claude-sonnet-5-5", Messages: []agent.Message{
			agent.TextMessage(agent.RoleUser, "Go."), assistant(sonnet, call("t1.1", "now", "{}")),
			{Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "now", agent.CallFailed, " \n")}},
		},
	})
	require.Contains(t, string(s.Bodies[0]), `"is_error":true`)
	require.Contains(t, string(s.Bodies[0]), "The call failed and says nothing of why.")
}
