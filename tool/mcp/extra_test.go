//go:build unix

package mcp_test

import (
	"encoding/json"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
	"github.com/stretchr/testify/require"
)

func (r rig) with(t *testing.T, name string, arguments map[string]any) (string, error) {
	t.Helper()
	if arguments == nil {
		arguments = map[string]any{}
	}
	raw, err := json.Marshal(arguments)
	require.NoError(t, err)
	return r.Call(t.Context(), &tool.Call{Tool: "tickets__" + name, Arguments: raw})
}

func TestResourcesAndPrompts(t *testing.T) {
	url := serveHTTP(t, httpHandler(rich(), nil)).URL
	specs, err := reach(t, url, mcp.Options{}).List(t.Context())
	require.NoError(t, err)
	require.NotContains(t, fullNames(specs), "tickets__read_resource", "who does not ask for them has tools alone")

	r := reach(t, url, mcp.Options{Resources: true, TrustHints: true})
	// Before anything was listed, as on a worker that takes over a run.
	text, err := r.with(t, "read_resource", map[string]any{"uri": "file:///notes.txt"})
	require.NoError(t, err)
	require.Equal(t, "[resource, file:///notes.txt, text/plain]\na note", text)
	specs, err = r.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"tickets__list_resources", "tickets__read_resource", "tickets__get_prompt"}, fullNames(specs[len(specs)-3:]))
	for _, s := range specs[len(specs)-3:] {
		require.True(t, s.ReadOnly)
		require.True(t, json.Valid(s.Input))
	}
	require.Equal(t, "Gets a prompt that the MCP server tickets has prepared. There are:\n- review(ticket, tone?): Code review: Reviews a ticket.", specs[len(specs)-1].Description)

	text, err = r.with(t, "list_resources", nil)
	require.NoError(t, err)
	require.Contains(t, text, "file:///notes.txt notes, text/plain, 5 bytes: Notes: what was noted\n")
	require.Contains(t, text, "ticket:///{id} (a pattern) ticket: A ticket\n")
	require.Contains(t, text, "There are more: call again with the cursor ")
	for uri, want := range map[string]string{
		"file:///photo.png": "[resource, file:///photo.png, image/png, 5 bytes, not shown]", "file:///void": "(empty)", "ticket:///7": "[resource, ticket:///7]\nticket 7",
	} {
		text, err = r.with(t, "read_resource", map[string]any{"uri": uri})
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
	text, err = r.with(t, "get_prompt", map[string]any{"name": "review", "arguments": map[string]any{"ticket": "7"}})
	require.NoError(t, err)
	require.Equal(t, "user: Review ticket 7.\nassistant: [image, image/png, 1 bytes, not shown]\n", text)

	for name, arguments := range map[string]map[string]any{
		"read_resource":  {"uri": "file:///nowhere"},
		"get_prompt":     {"name": "nobody"},
		"list_resources": {"page": 2},
	} {
		_, err = r.with(t, name, arguments)
		require.ErrorIs(t, err, agent.CodeDenied, name)
	}
	for _, arguments := range []map[string]any{nil, {"uri": ""}, {"uri": "a\x00b"}, {"uri": nil}} {
		_, err = r.with(t, "read_resource", arguments)
		require.ErrorIs(t, err, agent.CodeDenied)
		require.ErrorContains(t, err, "the argument uri")
	}
}

// A server that has no tools is one all the same, and what it lists has an end.
func TestResourcesWithoutTools(t *testing.T) {
	r := setup(t, "bare", mcp.Options{Resources: true})
	specs, err := r.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"tickets__list_resources", "tickets__read_resource"}, fullNames(specs))
	text, err := r.with(t, "list_resources", nil)
	require.NoError(t, err)
	require.Regexp(t, "^x:a a\nThere are more: call again with the cursor \"(.+)\".\n$", text)
	_, err = r.with(t, "get_prompt", map[string]any{"name": "x"})
	require.ErrorIs(t, err, agent.CodeDenied, "it has no prompts")
}

func TestToolsChange(t *testing.T) {
	r := setup(t, "changing", mcp.Options{})
	specs, err := r.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"tickets__leaves", "tickets__stays"}, fullNames(specs))
	require.Equal(t, "I leave", r.ok(t, "leaves", ""))
	// A run that began before has it in its Spec.
	_, err = r.call(t.Context(), "leaves", "")
	require.ErrorIs(t, err, agent.CodeDenied)
	require.ErrorContains(t, err, "tickets")
	require.Equal(t, "I came", r.ok(t, "comes", ""), "what has come since may be called")
	specs, err = r.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"tickets__comes", "tickets__stays"}, fullNames(specs))
	_, err = r.call(t.Context(), "leaves", "")
	require.EqualError(t, err, "the MCP server tickets does not have the tool tickets__leaves any more; nothing was done")

	// However long a server allows its list to be kept.
	r = setup(t, "lasting", mcp.Options{})
	first, err := r.List(t.Context())
	require.NoError(t, err)
	second, err := r.List(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, fullNames(first), fullNames(second))
}

func TestNobodyIsThereToAsk(t *testing.T) {
	r := setup(t, "asking", mcp.Options{})
	text, err := r.call(t.Context(), "ask", "")
	require.NoError(t, err)
	require.Equal(t, "told {\"extensions\":{\"io.modelcontextprotocol/skills\":{}}}, answered {\"action\":\"decline\"}\n"+
		"[The server wanted to ask a person during the call, which is not possible here. It was told so: Which floor?]", text)
	_, err = r.call(t.Context(), "open", "")
	require.ErrorIs(t, err, agent.CodeDenied)
	require.ErrorContains(t, err, "the MCP server tickets needs a person to open a page first, which is not possible here: sign in first")

	r = setup(t, "wanting", mcp.Options{})
	_, err = r.call(t.Context(), "later", "")
	require.EqualError(t, err, "the server is busy and asks for a retry later; it has done nothing yet")
}
