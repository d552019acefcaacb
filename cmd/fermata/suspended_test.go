package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
)

// Any message answers a model that waits for its user, so the commands begin with send.
func TestAWaitForTheUserNamesSend(t *testing.T) {
	c := &cli{Connector: &connect.Connector{}}
	q := agent.Request{ID: "q-1", Session: "s", Type: agent.RequestQuestion, Call: &agent.RequestCall{Tool: agent.WaitForUserTool}}
	lines := c.answers(q)
	require.Len(t, lines, 2)
	require.True(t, strings.HasPrefix(lines[0], "fermata send s '…'"), lines[0])
	require.True(t, strings.HasPrefix(lines[1], "fermata answer s --request q-1 '…'"), lines[1])
	q.Call.Tool = agent.AskUserTool
	require.Len(t, c.answers(q), 1)
}

// A skill is found by its own directory, or by its name in a directory of skills.
func TestShowASkillOfADirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("skills/notes", 0o755))
	require.NoError(t, os.WriteFile("skills/notes/SKILL.md", []byte("---\nname: notes\ndescription: Writes release notes.\n---\nOne line for each change.\n"), 0o600))
	for _, args := range [][]string{{"notes", "skills"}, {filepath.Join("skills", "notes")}} {
		r := inProcess(t, append([]string{"skills", "show"}, args...)...)
		require.Zero(t, r.exit, r.err)
		require.Contains(t, r.out, "One line for each change.")
	}
	r := inProcess(t, "skills", "show", "./skills")
	require.Equal(t, 2, r.exit)
	require.Contains(t, r.err, "fermata skills show NAME ./skills")
}
