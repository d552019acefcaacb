package activities

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// What a rule can't judge is not let through by it: a rule that asks or denies counts, one
// that allows does not.
func TestRulesCountWhereTheyCantJudge(t *testing.T) {
	over := `{"properties":{"amount_eur":{"exclusiveMinimum":500}},"required":["amount_eur"]}`
	for arguments, want := range map[string]bool{
		`{"amount_eur":5}`: false, `{"amount_eur":800}`: true, `{"amount_eur":500.00000000000000000001}`: true,
		`{"Amount_EUR":800}`: true, `{"AMOUNT_EUR":5}`: true, `{"amount_eur":1e400}`: true, `{"amount_eur":1e400000}`: true,
		`{"Amount_EUR":900,"x":1e400}`:               true,
		`{"amount_eur":5,"type":"x","Properties":1}`: false,
	} {
		for _, do := range []agent.Ruling{agent.Ask, agent.Deny} {
			spec := &agent.Spec{Toolset: []agent.ToolSpec{{Name: "pay"}}, Definition: agent.Definition{
				Rules: []agent.Rule{{Do: do, Arguments: json.RawMessage(over)}},
			}}
			matches, err := (&Deeds{}).matchRules(spec, []agent.Part{{Type: agent.PartCall, Call: &agent.ToolCall{Tool: "pay", Arguments: json.RawMessage(arguments)}}})
			require.NoError(t, err)
			require.Equal(t, want, len(matches[0]) == 1, "%s %s", do, arguments)
		}
	}
	spec := &agent.Spec{Toolset: []agent.ToolSpec{{Name: "pay"}}}
	ok, err := (&Deeds{}).matchesRule(spec, agent.Rule{Do: agent.Allow, Arguments: json.RawMessage(over)}, "pay", json.RawMessage(`{"Amount_EUR":800}`))
	require.NoError(t, err)
	require.False(t, ok)
}

// Rules cover the runtime's own tools only where they deny them by name.
func TestRulesOfTheRuntimesOwnTools(t *testing.T) {
	ask := agent.ToolSpec{Name: agent.AskUserTool, By: agent.ByRuntime}
	for _, r := range []agent.Rule{
		{Do: agent.Deny}, {Do: agent.Deny, Class: agent.ClassWrites}, {Do: agent.Ask, Tools: []string{"*"}}, {Do: agent.Deny, Tools: []string{"fs_*"}},
	} {
		require.False(t, r.Covers(ask), "%+v", r)
	}
	require.True(t, agent.Rule{Do: agent.Deny, Tools: []string{"ask_*"}}.Covers(ask))
	require.True(t, agent.Rule{Do: agent.Deny}.Covers(agent.ToolSpec{Name: "pay"}))
}
