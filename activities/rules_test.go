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
		`{"amountEur":800}`: true, `{"amount_eur ":800}`: true,
		`{"Amount_EUR":800}`: true, `{"AMOUNT_EUR":5}`: true, `{"amount_eur":1e400}`: true, `{"amount_eur":1e400000}`: true,
		`{"Amount_EUR":900,"x":1e400}`:               true,
		`{"amount_eur":5,"type":"x","Properties":1}`: false,
	} {
		for _, do := range []agent.Ruling{agent.RulingAsk, agent.RulingDeny} {
			spec := &agent.Spec{Toolset: []agent.ToolSpec{{Name: "pay"}}, Definition: agent.Definition{
				Rules: []agent.Rule{{Do: do, Arguments: json.RawMessage(over)}},
			}}
			matches, err := matchRules(spec, []agent.Part{{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: "pay", Arguments: json.RawMessage(arguments)}}})
			require.NoError(t, err)
			require.Equal(t, want, len(matches[0]) == 1, "%s %s", do, arguments)
		}
	}
	spec := &agent.Spec{Toolset: []agent.ToolSpec{{Name: "pay"}}}
	ok, err := matchesRule(spec, agent.Rule{Do: agent.RulingAllow, Arguments: json.RawMessage(over)}, "pay", json.RawMessage(`{"Amount_EUR":800}`))
	require.NoError(t, err)
	require.False(t, ok)
}

// Rules cover the runtime's own tools only where they deny them by name.
func TestRulesOfTheRuntimesOwnTools(t *testing.T) {
	ask := agent.ToolSpec{Name: agent.AskUserTool, Executor: agent.ExecutorRuntime}
	for _, r := range []agent.Rule{
		{Do: agent.RulingDeny}, {Do: agent.RulingDeny, Class: agent.ClassWrites}, {Do: agent.RulingAsk, Tools: []string{"*"}}, {Do: agent.RulingDeny, Tools: []string{"fs_*"}},
	} {
		require.False(t, r.Covers(ask), "%+v", r)
	}
	require.True(t, agent.Rule{Do: agent.RulingDeny, Tools: []string{"ask_*"}}.Covers(ask))
	require.True(t, agent.Rule{Do: agent.RulingDeny}.Covers(agent.ToolSpec{Name: "pay"}))
}

// Edited arguments are judged again: by the default, and by the approvers that the tool names.
func TestEditedArgumentsAreJudgedAgain(t *testing.T) {
	small := agent.Rule{Do: agent.RulingAsk, Arguments: json.RawMessage(`{"properties":{"eur":{"maximum":5}},"required":["eur"]}`)}
	spec := &agent.Spec{
		Toolset:    []agent.ToolSpec{{Name: "pay"}, {Name: "send", Approval: &agent.ToolApproval{Approvers: []string{"ana"}}}},
		Definition: agent.Definition{Rules: []agent.Rule{small, {Do: agent.RulingDeny, Otherwise: true}}},
	}
	edited := func(tool, arguments, by string) error {
		in := ToolInput{}.of(tool, arguments)
		in.Approver = by
		return deniesEdited(spec, in)
	}
	require.NoError(t, edited("pay", `{"eur":3}`, ""))
	require.ErrorContains(t, edited("pay", `{"eur":30}`, ""), "Permission denied by rule 1")
	require.NoError(t, edited("send", `{"eur":3}`, "ana"))
	require.ErrorContains(t, edited("send", `{"eur":3}`, "bo"), "the approval of ana")
}

// A worker says which tools ask, by names and patterns; the strictest counts.
func TestWorkersTellToolsToAsk(t *testing.T) {
	ana, anybody := agent.ToolApproval{Approvers: []string{"ana"}}, agent.ToolApproval{}
	d := &Activities{Approvals: map[string]agent.ToolApproval{"bank__*": anybody, "bank__pay": ana}}
	require.Equal(t, &ana, d.ToolSpec(agent.ToolSpec{Name: "bank__pay"}).Approval)
	require.Equal(t, &anybody, d.ToolSpec(agent.ToolSpec{Name: "bank__list"}).Approval)
	require.Nil(t, d.ToolSpec(agent.ToolSpec{Name: "look"}).Approval)
	own := &agent.ToolApproval{Approvers: []string{"bo"}}
	require.Equal(t, own, d.ToolSpec(agent.ToolSpec{Name: "bank__pay", Approval: own}).Approval, "its own come first")
	tools := []agent.ToolSpec{{Name: "bank__pay"}, {Name: "bank__list"}}
	d.offer(tools)
	require.Equal(t, []string{"bank__list", "bank__pay"}, []string{tools[0].Name, tools[1].Name})
	require.Equal(t, &ana, tools[1].Approval)
}
