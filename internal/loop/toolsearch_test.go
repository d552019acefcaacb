package loop

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

func manyTools() *agent.Spec {
	s := &agent.Spec{Definition: agent.Definition{ToolSearch: &agent.ToolSearch{Always: []string{"crm__find"}}}}
	for _, t := range [][2]string{{"crm__find", "Finds a customer."}, {"crm__updateCustomer", "Changes a customer."}, {"billing__refund", "Pays money back to a customer."}, {"camera", ""}} {
		s.Toolset = append(s.Toolset, agent.ToolSpec{Name: t[0], Description: t[1]})
	}
	s.Toolset = append(s.Toolset, OwnTools(*s)...)
	return s
}

// searched returns what a query finds.
func searched(s *agent.Spec, query string) (names []string, text string) {
	arguments, _ := json.Marshal(map[string]string{"query": query})
	f := SearchTools(s, HiddenTools(s, nil), []agent.ToolCall{{Tool: agent.ToolSearchTool, Arguments: arguments}})
	return f[0].Names, f[0].Text + f[0].Err
}

// A search finds hidden tools by words of names and descriptions, the best first, and says if none
// fits. A long list is cut, and its rest counted.
func TestSearchTools(t *testing.T) {
	s := manyTools()
	require.Equal(t, []string{"billing__refund", "camera", "crm__updateCustomer"}, slices.Sorted(maps.Keys(HiddenTools(s, nil))))
	for query, want := range map[string][]string{
		"refund a customer": {"crm__updateCustomer", "billing__refund"}, // alike, so in the Spec's order
		"customer money":    {"crm__updateCustomer", "billing__refund"},
		"CUSTOMER update":   {"crm__updateCustomer"},
		"camera":            {"camera"},
		"crm__find":         {"crm__updateCustomer"}, // by its part crm; crm__find itself is shown already
	} {
		names, text := searched(s, query)
		require.Equal(t, want, names, query)
		require.Contains(t, text, want[0], query)
	}
	_, text := searched(s, "weather")
	require.Equal(t, "No tool fits. 3 tools are hidden; try other words.", text)
	_, text = searched(s, " ,. ")
	require.Contains(t, text, "query has no word")

	for i := range 20 {
		s.Toolset = append(s.Toolset, agent.ToolSpec{Name: fmt.Sprintf("wiki_%d", i), Description: strings.Repeat("wiki ", 10_000)})
	}
	names, text := searched(s, "wiki "+strings.Repeat("x", 10_000))
	require.Equal(t, []string{"wiki_0", "wiki_1", "wiki_2", "wiki_3", "wiki_4", "wiki_5", "wiki_6", "wiki_7"}, names)
	require.Contains(t, text, "(12 more fit)")
	require.Less(t, len(text), maxFound*(maxDescription+100))
}

// The words of the tools are read once for a reply, and at most four of its searches are made: the
// model reads that about the others.
func TestSearchesOfOneReplyAreBounded(t *testing.T) {
	s := manyTools()
	hidden := HiddenTools(s, nil)
	var words strings.Builder
	for i := range 200 {
		fmt.Fprintf(&words, "%x ", i)
	}
	for i := range 50 {
		name := fmt.Sprintf("wiki_%d", i)
		s.Toolset = append(s.Toolset, agent.ToolSpec{Name: name, Description: words.String()})
		hidden[name] = true
	}
	calls := make([]agent.ToolCall, maxCalls)
	for i := range calls {
		calls[i] = agent.ToolCall{Tool: agent.ToolSearchTool, Arguments: json.RawMessage(`{"query":"camera"}`)}
	}
	one := testing.AllocsPerRun(1, func() { SearchTools(s, hidden, calls[:1]) })
	all := testing.AllocsPerRun(1, func() { SearchTools(s, hidden, calls) })
	require.Less(t, all, 1.5*one)
	found := SearchTools(s, hidden, calls)
	require.Len(t, found, maxCalls)
	for i, f := range found {
		if i < 4 {
			require.Equal(t, []string{"camera"}, f.Names)
			continue
		}
		require.Contains(t, f.Err, "one reply may search 4 times")
	}
}

// What was found or called in the conversation is offered, in whichever run of the session that was;
// a refused call is no use, and a summary forgets (HA-133).
func TestHiddenToolsFollowTheConversation(t *testing.T) {
	s := manyTools()
	result := func(r agent.ToolResult) agent.Message {
		return agent.Message{Role: agent.RoleTool, Parts: []agent.Part{{Type: agent.PartToolResult, Result: &r}}}
	}
	talk := []agent.Message{
		agent.TextMessage(agent.RoleUser, "go"),
		result(agent.ToolResult{Tool: agent.ToolSearchTool, Status: agent.CallOK, Tools: []string{"camera"}}),
		result(agent.ToolResult{Tool: "billing__refund", Status: agent.CallRejected}),
		result(agent.ToolResult{Tool: "crm__updateCustomer", Status: agent.CallFailed}),
		agent.TextMessage(agent.RoleUser, "the next run's task"),
	}
	require.Equal(t, map[string]bool{"billing__refund": true}, HiddenTools(s, talk))
	require.Len(t, HiddenTools(s, talk[4:]), 3, "after a summary of what was before")
}
