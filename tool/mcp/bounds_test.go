package mcp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
)

func init() {
	schema := func(inside string) string { return `{"type":"object","x":` + inside + `}` }
	lists := func(name, tools string) {
		servers[name] = func() {
			read(answer(map[string]string{"initialize": initialized, "tools/list": `{"tools":[` + tools + `]}`}))
		}
	}
	lists("crowd", strings.Repeat("{},", 600_000)+"{}")
	lists("pit", `{"name":"good","inputSchema":{"type":"object"}},{"name":"deep","inputSchema":`+schema(strings.Repeat("[", 200)+strings.Repeat("]", 200))+`}`)
	lists("loud", `{"name":"`+strings.Repeat("n", 1<<20)+`","inputSchema":3}`+strings.Repeat(`,{"name":"bad","inputSchema":3}`, 100))
	servers["abyss"] = func() {
		deep := `{"content":[],"structuredContent":{"x":` + strings.Repeat("[", 1500) + strings.Repeat("]", 1500) + `}}`
		read(answer(map[string]string{"initialize": initialized, "tools/list": oneTool, "tools/call": deep}))
	}
	servers["heavy"] = func() {
		heavy := `{"nextCursor":"more","tools":[{"name":"a","inputSchema":` + schema(`"`+strings.Repeat("x", 5<<20)+`"`) + `}]}`
		read(answer(map[string]string{"initialize": initialized, "tools/list": heavy}))
	}
}

// What a server lists takes little of the worker's memory, whatever it lists.
func TestListsTakeLittleMemory(t *testing.T) {
	for kind, words := range map[string]string{
		"crowd": "it sent a message of more than 200000 values",
		"heavy": "its list of tools has more than 16777216 bytes",
	} {
		_, err := setup(t, kind, mcp.Options{}).List(t.Context())
		require.ErrorContains(t, err, words)
	}
}

// A tool whose schema no run takes is left out, and the others are there.
func TestNestedSchema(t *testing.T) {
	r := setup(t, "pit", mcp.Options{})
	specs, err := r.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"tickets__good"}, fullNames(specs))
	require.Contains(t, r.log.String(), "its schema is nested more than 128 levels deep")
}

// What is left out of a list fills no log.
func TestLogOfAList(t *testing.T) {
	r := setup(t, "loud", mcp.Options{})
	for range 5 {
		_, err := r.List(t.Context())
		require.NoError(t, err)
	}
	log := r.log.String()
	require.Contains(t, log, "MCP server writes too much, leaving lines out")
	require.Less(t, strings.Count(log, "left out:"), 250)
	require.Less(t, len(log), 100_000)
}

// An answer that can't be read for its depth ends its call at once.
func TestDeepAnswer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	_, err := setup(t, "abyss", mcp.Options{}).call(ctx, "one", "")
	require.ErrorContains(t, err, "the MCP server tickets was ended during the call: it sent a message that is nested more than 1000 levels deep")
	require.ErrorIs(t, err, tool.ErrUnknown)
}
