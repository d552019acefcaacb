package openai_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
)

// A temperature goes only to models that take one: others refuse the request.
func TestTemperature(t *testing.T) {
	for _, c := range []struct {
		model string
		level agent.Reasoning
		sent  bool
	}{
		{"gpt-6-sol", "", false},
		{"gpt-5-mini", agent.ReasoningOff, false},
		{"o3-2025-04-16", "", false},
		{"gpt-5.2", "", false},
		{"gpt-5.2", agent.ReasoningHigh, false},
		{"gpt-5.2", agent.ReasoningOff, true},
		{"gpt-4.1", "", true},
		{"llama", agent.ReasoningHigh, true},
	} {
		chat, chats := serve(t, standin.Drip(wholeChat, 0))
		response, responses := serveResponses(t, standin.Drip(wholeResponse, 0))
		req := ask("Hello")
		req.Model, req.Temperature, req.Reasoning = c.model, &half, c.level
		standin.Reply(t, chat, req)
		standin.Reply(t, response, req)
		for _, body := range [][]byte{chats.Bodies[0], responses.Bodies[0]} {
			require.Equal(t, c.sent, strings.Contains(string(body), `"temperature"`), "%s, %s: %s", c.model, c.level, body)
		}
	}
}
