package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A level that a model lacks becomes the nearest that it has.
func TestNearestReasoning(t *testing.T) {
	levels := func(names ...agent.Reasoning) []agent.Reasoning { return names }
	for _, c := range []struct {
		want agent.Reasoning
		has  []agent.Reasoning
		got  agent.Reasoning
	}{
		{"high", levels("low", "medium", "high"), "high"},
		{"xhigh", levels("low", "medium", "high"), "high"},
		{"xhigh", levels("low", "medium", "high", "max"), "high"}, // max is for those who ask for it
		{"max", levels("low", "medium", "high", "xhigh"), "xhigh"},
		{"max", levels("low", "high", "max"), "max"},
		{"off", levels("low", "medium", "high"), "low"},
		{"off", levels("minimal", "low"), "minimal"},
		{"minimal", levels("off", "low", "high"), "low"}, // who asks for some is not given none
		{"medium", levels("high", "low"), "high"},
		{"low", levels("high"), "high"},
		{"low", nil, ""},
		{"auto", levels("low"), ""},
		{"", levels("low"), ""},
	} {
		require.Equal(t, c.got, c.want.Nearest(c.has), "%q of %v", c.want, c.has)
	}
}

// An agent says how much its model is to think (HA-50).
func TestReasoningIsChecked(t *testing.T) {
	for _, r := range []agent.Reasoning{"", "auto", "off", "minimal", "low", "medium", "high", "xhigh", "max"} {
		require.NoError(t, agent.Definition{Name: "a", Model: "m/x", Reasoning: r}.Check(), r)
	}
	err := agent.Definition{Name: "a", Model: "m/x", Reasoning: "hard"}.Check()
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.EqualError(t, err, `agent a: reasoning must be one of auto, off, minimal, low, medium, high, xhigh, max, not "hard"`)
}
