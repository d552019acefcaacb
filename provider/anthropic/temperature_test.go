package anthropic_test

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
		{"claude-sonnet-5-5", "", false},
		{"claude-opus-4-7", agent.ReasoningOff, false},
		{"claude-opus-4-6", "", true},
		{"claude-sonnet-4-5-20250929", agent.ReasoningOff, true},
		{"claude-sonnet-4-5", agent.ReasoningHigh, false},
		{"an-imitator", "", true},
	} {
		m, s := serve(t, standin.Answer(200, "text/event-stream", whole))
		req := ask("Hello")
		req.Model, req.Temperature, req.Reasoning = c.model, &half, c.level
		standin.Reply(t, m, req)
		require.Equal(t, c.sent, strings.Contains(string(s.Bodies[0]), `"temperature"`), "%s, %s", c.model, c.level)
	}
}
