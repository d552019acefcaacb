package anthropic_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
)

// Levels are sent in the words of the model that is asked (HA-143).
func TestReasoning(t *testing.T) {
	const adaptive = `{"type":"adaptive"}`
	budget := func(n string) string { return `{"type":"enabled","budget_tokens":` + n + `}` }
	for _, c := range []struct {
		model    string
		level    agent.Reasoning
		thinking string
		effort   string
	}{
		{"claude-sonnet-5-5", "", "", ""},
		{"claude-sonnet-5-5", "auto", adaptive, ""},
		{"claude-sonnet-5-5", "off", `{"type":"between_tools"}`, ""},
		{"claude-sonnet-5-5", "minimal", adaptive, "low"},
		{"claude-sonnet-5-5", "xhigh", adaptive, "xhigh"},
		{"claude-opus-5-5", "off", adaptive, "low"},
		{"claude-opus-5", "off", `{"type":"disabled"}`, ""},
		{"claude-opus-5", "medium", adaptive, "medium"},
		{"claude-sonnet-5-5", "max", adaptive, "max"},
		{"claude-opus-4-6", "xhigh", adaptive, "high"},
		{"claude-opus-4-6", "max", adaptive, "max"},
		{"claude-of-tomorrow", "off", adaptive, "low"},
		{"claude-haiku-4-5-20251001", "off", `{"type":"disabled"}`, ""},
		{"claude-haiku-4-5-20251001", "minimal", budget("1024"), ""},
		{"claude-haiku-4-5", "xhigh", budget("32000"), ""}, // half of its longest reply
		{"claude-haiku-4-5", "max", budget("32000"), ""},
		{"claude-opus-4-5", "auto", budget("8192"), ""},
		{"glm-5", "high", budget("8192"), ""}, // half of what a reply may have
	} {
		m, s := serve(t, standin.Answer(200, "text/event-stream", whole))
		standin.Reply(t, m, &model.Request{Model: c.model, Messages: conversation[:1], Reasoning: c.level})
		thinking, effort := sent(t, s.Bodies[0])
		if c.thinking == "" {
			require.Empty(t, thinking)
		} else {
			require.JSONEq(t, c.thinking, thinking, "%s of %s", c.level, c.model)
		}
		require.Equal(t, c.effort, effort, "%s of %s", c.level, c.model)
	}
}

func sent(t *testing.T, body []byte) (thinking, effort string) {
	t.Helper()
	var in struct {
		Thinking json.RawMessage
		Output   struct{ Effort string } `json:"output_config"`
	}
	require.NoError(t, json.Unmarshal(body, &in))
	return string(in.Thinking), in.Output.Effort
}

// A budget is not sent where the provider would refuse the request for it.
func TestNoRoomForThinking(t *testing.T) {
	by := func(name string, parts ...agent.Part) []agent.Message {
		return []agent.Message{conversation[0], assistant(name, append(parts, call("t1.1", "now", `{}`))...), {Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "now", agent.CallOK, "12:00")}}}
	}
	own := "anthropic/claude-haiku-4-5"
	for name, c := range map[string]struct {
		req  model.Request
		want bool
	}{
		"its own turn goes on":             {model.Request{Messages: by(own, thought("hm", "b2xk"))}, true},
		"another's turn goes on":           {model.Request{Messages: by("openai/gpt-6-sol")}, false},
		"a new turn after another's":       {model.Request{Messages: append(by("openai/gpt-6-sol"), assistant(own, said("12:00")), agent.TextMessage(agent.RoleUser, "Thanks"))}, true},
		"a reply of a few words":           {model.Request{Messages: conversation[:1], MaxOutputTokens: 2000}, false},
		"a reply that is just long enough": {model.Request{Messages: conversation[:1], MaxOutputTokens: 2048}, true},
	} {
		m, s := serve(t, standin.Answer(200, "text/event-stream", whole))
		c.req.Model, c.req.Reasoning = "claude-haiku-4-5", agent.ReasoningHigh
		standin.Reply(t, m, &c.req)
		thinking, _ := sent(t, s.Bodies[0])
		require.Equal(t, c.want, thinking != "", name)
	}
}
