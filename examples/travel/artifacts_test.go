package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
)

// What a run has saved is read with a client of the same store, as any program reads it.
func TestThePlanIsSaved(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	o := options()
	o.Store = dir
	o.Agents = append(o.Agents, agent.Definition{Name: "writer", Model: "anthropic/claude-sonnet-5", Tools: []string{agent.SaveArtifactTool}})
	s := testsuite.New(t, &testsuite.Options{Worker: o, Model: testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.SaveArtifactTool, Arguments: map[string]any{"name": "plan.md", "content": "# Rome"}}}},
		testsuite.Reply{Text: "The plan is saved."},
	)})
	run := s.Start("writer", "Plan two nights in Rome", nil)
	require.Equal(t, "plan.md", run.Completed().Artifacts[0].Name)

	runs := client.New(nil, &client.Options{Store: dir})
	saved := map[string]string{}
	for a, err := range runs.Artifacts(t.Context(), run.Session) {
		require.NoError(t, err)
		data, err := runs.File(t.Context(), &a.File)
		require.NoError(t, err)
		saved[a.Name] = string(data)
	}
	require.Equal(t, map[string]string{"plan.md": "# Rome"}, saved)
}
