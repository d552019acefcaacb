package activities

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/rawjson"
)

// What a model wrote is changed where nobody would take it back, and nowhere else.
func TestTidied(t *testing.T) {
	spec := &agent.Spec{Toolset: []agent.ToolSpec{{Name: "echo"}, {Name: "unknown_e_ho"}}}
	deep := `{"a":` + strings.Repeat("[", rawjson.MaxWrittenDepth) + strings.Repeat("]", rawjson.MaxWrittenDepth) + `}`
	for was, want := range map[string]string{
		"echo": "echo", "nobody": "nobody", "e\x00ho": "unknown_e_ho_", "": "unknown_", "nöte": "unknown_n_te",
		strings.Repeat("n", 10_000): "unknown_" + strings.Repeat("n", 40),
	} {
		got := normalized([]agent.Part{{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: was, ProviderID: "id", Arguments: json.RawMessage(`{"a":1}`)}}}, spec)[0].Call
		require.Equal(t, agent.ToolCall{Tool: want, ProviderID: "id", Arguments: json.RawMessage(`{"a":1}`)}, *got)
		require.NoError(t, agent.CheckTool(got.Tool))
	}
	parts := []agent.Part{
		{Type: agent.PartText, Text: "a"},
		{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: "echo", ProviderID: strings.Repeat("i", 300), Arguments: json.RawMessage(deep)}},
		{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: "echo", Arguments: json.RawMessage("{\"a\":\"\xff\"}")}},
		{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: "echo", Arguments: json.RawMessage(`{"to":{"eur":900},"n":12345678901234567890,"to":{"note":"x"}}`)}},
	}
	got := normalized(parts, spec)
	require.Equal(t, parts[0], got[0])
	require.Equal(t, agent.ToolCall{Tool: "echo", Malformed: deep}, *got[1].Call)
	require.Equal(t, `{"a":"�"}`, string(got[2].Call.Arguments))
	require.Equal(t, `{"n":12345678901234567890,"to":{"note":"x"}}`, string(got[3].Call.Arguments), "a tool would read both, a rule the last")
	require.Len(t, parts[1].Call.ProviderID, 300, "what was given is not changed")
}

// What a provider wrote of its own tools is kept all or not at all, and nothing of it that
// could not be read again.
func TestTidiedSteps(t *testing.T) {
	step := func(raw string) agent.Part {
		return agent.Part{Type: agent.PartServerTool, Text: "x", Raw: json.RawMessage(raw)}
	}
	kept := func(raw ...string) (all []int) {
		var parts []agent.Part
		for _, r := range raw {
			parts = append(parts, step(r))
		}
		for _, p := range normalized(parts, &agent.Spec{}) {
			require.Equal(t, "x", p.Text)
			all = append(all, len(p.Raw))
		}
		return all
	}
	long := `"` + strings.Repeat("x", maxRaw-4) + `"`
	require.Equal(t, []int{2, maxRaw - 2}, kept(`{}`, long))
	require.Equal(t, []int{0, 0}, kept(`{} `, long))
	require.Equal(t, []int{0, 2}, kept(strings.Repeat("[", rawjson.MaxWrittenDepth+1), `{}`))
	require.Equal(t, []int{0, 2}, kept("\"\xff\"", `{}`))
	require.Equal(t, []int{0, 2}, kept(`[,]`, `{}`))
}

// Citations that are not valid, or are too many, are counted, whatever the adapter.
func TestTidiedCitations(t *testing.T) {
	page := agent.Citation{End: 2, URL: "https://a.example", Title: strings.Repeat("x", 1000)}
	many := []agent.Citation{page, page, {End: 3, URL: "https://a.example"}, {URL: "javascript:x"}, {Start: 1, Title: "x"}}
	for i := range 100 {
		many = append(many, agent.Citation{Start: i % 2, End: 2, Title: strings.Repeat("y", i)})
	}
	parts := []agent.Part{{Type: agent.PartThinking, Text: "ab", Citations: many[:1]}, {Type: agent.PartText, Text: "ab", Citations: many, Uncited: 7}}
	got := normalized(parts, &agent.Spec{})
	require.Empty(t, got[0].Citations)
	require.Equal(t, 1, got[0].Uncited)
	require.Len(t, got[1].Citations, agent.MaxCitations)
	require.Len(t, got[1].Citations[0].Title, agent.MaxCitedTitle)
	require.Equal(t, 7+3+100-(agent.MaxCitations-1), got[1].Uncited, "a repeated one is one")
	require.Len(t, parts[1].Citations, 105, "what was given is not changed")
}
