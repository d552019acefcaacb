package loop

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Tools that a source has changed during a call are those of the next turn; other
// sources' and the runtime's own stay.
func TestSourcesToolsChange(t *testing.T) {
	d := newDrive(t, agent.Spec{
		Definition: agent.Definition{Name: "a", Tools: []string{"ask_user", "echo"}},
		Toolset:    []agent.ToolSpec{{Name: "echo"}, {Name: "wiki__old"}, {Name: "wikis__stays"}},
	})
	d.asks(agent.ToolCall{Tool: "wiki__old", Arguments: json.RawMessage("{}")})
	d.step(ToolReturned{
		Result:      agent.ToolResult{Call: d.state.Calls.List[0].ID, Tool: "wiki__old", Status: agent.CallOK, Text: "ok"},
		ToolsChange: &agent.ToolsChange{Source: "wiki", Tools: []agent.ToolSpec{{Name: "wiki__new", Description: "Finds.", Input: json.RawMessage(`{"type":"object"}`)}}},
	})
	for name, known := range map[string]bool{"echo": true, "ask_user": true, "wikis__stays": true, "wiki__new": true, "wiki__old": false} {
		_, ok := d.state.Spec.Tool(name)
		require.Equal(t, known, ok, name)
	}
	d.asks(agent.ToolCall{Tool: "wiki__new", Arguments: json.RawMessage("{}")})
	require.Equal(t, CallRunning, d.state.Calls.List[0].State)
}

// What a source adds is bounded as what it listed first: by the ceilings of the runs above,
// and by what a state may have (HA-97). Of a list that is too long nothing is taken.
func TestASourceAddsNothingBeyondACeiling(t *testing.T) {
	d := &drive{t: t}
	d.step(Begin{Session: "s/b-1", Run: "r", Start: agent.Start{Agent: "b", Input: agent.Input{Text: "go"}}, ChildStart: &wire.ChildStart{
		Parent: wire.Parent{Session: "s", Run: "p"}, Depth: 1, Ceilings: [][]string{{"wiki__old", "wiki__new"}},
	}})
	spec := agent.Spec{Definition: agent.Definition{Name: "b"}.WithDefaults(), Toolset: []agent.ToolSpec{{Name: "wiki__old"}}}
	d.step(Opened{Spec: &spec})
	relists := func(tools ...agent.ToolSpec) {
		d.asks(agent.ToolCall{Tool: "wiki__old", Arguments: json.RawMessage("{}")})
		d.step(ToolReturned{Result: agent.ToolResult{Call: d.state.Calls.List[0].ID, Tool: "wiki__old", Status: agent.CallOK}, ToolsChange: &agent.ToolsChange{Source: "wiki", Tools: tools}})
	}
	relists(agent.ToolSpec{Name: "wiki__old"}, agent.ToolSpec{Name: "wiki__new"}, agent.ToolSpec{Name: "wiki__delete"})
	named := func() (names []string) {
		for _, t := range d.state.Spec.Toolset {
			names = append(names, t.Name)
		}
		return names
	}
	require.Equal(t, []string{"wiki__old", "wiki__new"}, named())
	for _, e := range d.state.Log.Tail {
		if e.ToolsChange != nil {
			require.Len(t, e.ToolsChange.Tools, 2, "the model is asked by the log")
		}
	}
	d.asks(agent.ToolCall{Tool: "wiki__delete", Arguments: json.RawMessage("{}")})
	require.Equal(t, agent.CallRejected, d.said().Parts[0].Result.Status)

	relists(agent.ToolSpec{Name: "wiki__old"}, agent.ToolSpec{Name: "wiki__new", Secrets: []string{strings.Repeat("x", specShare)}})
	require.Equal(t, []string{"wiki__old", "wiki__new"}, named())
	require.LessOrEqual(t, written(d.state.Spec), specShare)
	var refused []*agent.Error
	for _, e := range d.state.Log.Tail {
		if e.ToolsChange != nil && e.ToolsChange.Refused != nil {
			require.Empty(t, e.ToolsChange.Tools)
			refused = append(refused, e.ToolsChange.Refused)
		}
	}
	require.Len(t, refused, 1, "what was not taken is told")
	require.ErrorIs(t, refused[0], agent.CodeTooLarge)
}
