package activities

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
)

// A call that names no principal is refused with a text for the model: it never reaches the memory of
// starts without a name.
func TestACallWithoutAPrincipalIsRefused(t *testing.T) {
	s, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	d := &Activities{Log: store.NewLog(s)}
	in := ToolInput{}
	in.Agent, in.Tool, in.Session = "reviewer", agent.MemoryTool, "s/reviewer-1"
	call := &tool.Call{Key: "k", Arguments: json.RawMessage(`{"command":"create","path":"/memories/a.md","file_text":"canary"}`)}
	_, err = d.remember(t.Context(), in, call)
	require.Equal(t, agent.CodeDenied, agent.CodeOf(err))
	require.ErrorContains(t, err, "You have no memory here")
	for owner := range d.Log.Memories(t.Context(), "") {
		t.Errorf("%v has a memory", owner)
	}
	in.Principal = "ana"
	_, err = d.remember(t.Context(), in, call)
	require.NoError(t, err)
}
