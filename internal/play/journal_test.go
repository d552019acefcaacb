package play

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A rejected call has the code of what is not there, by the tools that the run had when it was made. A
// call that a rule rejects has none.
func TestTheCodeOfARejectedCall(t *testing.T) {
	call := func(id, name string) []agent.Event {
		asks := agent.Message{Role: agent.RoleAssistant, Parts: []agent.Part{{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: id, ProviderID: id, Tool: name}}}}
		says := agent.Message{Role: agent.RoleTool, Parts: []agent.Part{{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: id, Tool: name, Status: agent.CallRejected}}}}
		return []agent.Event{{Message: &asks}, {Message: &says}}
	}
	var j Journal
	j.Read([]agent.Event{{Started: &agent.Started{Run: "r", Spec: &agent.Spec{Flow: true, Toolset: []agent.ToolSpec{{Name: "look"}, {Name: "shop__buy"}}}}}})
	j.Read(call("1", "look"))
	j.Read(call("2", "shop__sing"))
	j.Read(call("3", agent.SubAgentPrefix+"boss"))
	j.Read([]agent.Event{{ToolsChange: &agent.ToolsChange{Source: "shop", Tools: []agent.ToolSpec{{Name: "shop__sing"}}}}})
	j.Read(call("4", "shop__sing"))
	j.Read(call("5", "shop__buy"))
	sings := call("6", "shop__sing")
	j.Read([]agent.Event{sings[0], {ToolsChange: &agent.ToolsChange{Source: "shop"}}, sings[1]}) // the source drops the tool while a person is asked
	var codes []agent.Code
	for _, r := range j.Take() {
		codes = append(codes, r.Code)
	}
	require.Equal(t, []agent.Code{"", agent.CodeUnknownTool, agent.CodeUnknownAgent, "", agent.CodeUnknownTool, ""}, codes)
}
