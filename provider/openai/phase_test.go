package openai_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
)

// A message's phase goes back to the provider, which tells by it what its model said on
// the way to an answer.
func TestPhase(t *testing.T) {
	phased := func(phase, text string) string {
		return `{"type":"message","id":"m","role":"assistant","phase":"` + phase + `","content":[{"type":"output_text","text":"` + text + `"}]}`
	}
	m, s := serveResponses(t, standin.Drip(events(created, done(0, phased("commentary", "I look.")), done(1, phased("final_answer", "Mild.")), ended("completed", "")), 0))
	req := ask("How is Rome?")
	reply, _ := standin.Reply(t, m, req)
	own := agent.Message{Role: agent.RoleAssistant, Model: reply.ProviderModel, Parts: reply.Parts}
	foreign := own
	foreign.Model = "another/model"
	req.Messages = append(req.Messages, own, foreign)
	standin.Reply(t, m, req)
	var in struct {
		Input []struct{ Phase, Content string }
	}
	require.NoError(t, json.Unmarshal(s.Bodies[1], &in))
	require.Equal(t, []struct{ Phase, Content string }{
		{"", "How is Rome?"}, {"commentary", "I look."}, {"final_answer", "Mild."}, {"", "I look."}, {"", "Mild."},
	}, in.Input)
}
