package agentsfile

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Whoever writes an agents file finds every field on one page, and what is there is taken.
func TestThePageHasEveryField(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/agents.md")
	require.NoError(t, err)
	names := parts[:len(parts):len(parts)]
	for _, of := range []reflect.Type{reflect.TypeFor[agent.Definition](), reflect.TypeFor[agent.SubAgent](), reflect.TypeFor[agent.Limits]()} {
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	for _, name := range names {
		if name != "name" && name != "agent" { // the key of the entry; and in {agent: NAME}
			require.Contains(t, string(page), "`"+name+"`")
		}
	}

	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("project", 0o700))
	require.NoError(t, os.WriteFile(DefaultName, []byte(example), 0o600))
	f, err := Load(t.Context(), DefaultName)
	require.NoError(t, err)
	require.Len(t, f.Agents, 2)
}
