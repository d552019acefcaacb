package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/roles"
)

func load(t *testing.T, text string) (*agentsfile.File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fermata.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return agentsfile.Load(t.Context(), path)
}

// A copied role is an agents file, and its agent has all that the role fills in.
func TestACopiedRoleIsAnAgent(t *testing.T) {
	for _, name := range roles.Names() {
		to := filepath.Join(t.TempDir(), "mine.yaml")
		r := inProcess(t, "roles", "copy", name, "mine", "-o", to, "--model", "anthropic/claude-sonnet-5")
		require.Zero(t, r.exit, r.err)
		text, err := os.ReadFile(to)
		require.NoError(t, err)
		r = inProcess(t, "run", "mine", "Look", "--agents", to, "--dry-run") // as it was written
		require.Zero(t, r.exit, r.err)
		file, err := agentsfile.Load(t.Context(), to)
		require.NoError(t, err)
		got, err := file.Agent("mine")
		require.NoError(t, err)
		want, err := roles.Fill(agent.Definition{Name: "mine", Model: "anthropic/claude-sonnet-5", Role: name, Tools: got.Tools}, true)
		require.NoError(t, err)
		role, _ := roles.Get(name)
		want.Role, want.Rules = "", role.Rules // the copy keeps the rules for tools that are added
		require.Equal(t, want, got)

		// A shell can write the file, too.
		r = inProcess(t, "roles", "copy", name, "mine", "--model", "anthropic/claude-sonnet-5")
		require.Zero(t, r.exit, r.err)
		require.Equal(t, string(text), r.out)
		_, err = load(t, r.out)
		require.NoError(t, err)
		r = inProcess(t, "roles", "show", name)
		require.Zero(t, r.exit, r.err)
		require.Equal(t, roles.Text(name), r.out)

		again := inProcess(t, "roles", "copy", name, "mine", "-o", to)
		require.Equal(t, 2, again.exit)
		require.Contains(t, again.err, "exists already")
	}
}

// An agent of the file takes a role by its name, and what the file says wins.
func TestAnAgentTakesARole(t *testing.T) {
	file, err := load(t, "agents:\n  a: {model: anthropic/claude-sonnet-5, role: reviewer, nudges: 7}\n  b: {model: script:s.yaml, role: reviewer}\n")
	require.Error(t, err) // the script does not exist: both errors would come at once
	require.NotContains(t, err.Error(), "role")
	require.Nil(t, file)

	file, err = load(t, "agents:\n  a: {model: anthropic/claude-sonnet-5, role: reviewer, nudges: 7}\n  b: {model: local, role: reviewer}\nmodels:\n  local: {provider: openai, base_url: \"http://127.0.0.1:1/v1\", model: plain}\n")
	require.NoError(t, err)
	a, err := file.Agent("a")
	require.NoError(t, err)
	require.Equal(t, 7, a.Nudges)
	require.Equal(t, 30, a.Limits.OwnTurns)
	require.Equal(t, agent.ReasoningMedium, a.Reasoning)
	b, err := file.Agent("b")
	require.NoError(t, err)
	require.Empty(t, b.Reasoning, "nothing says that this model can think")

	_, err = load(t, "agents:\n  a:\n    model: anthropic/claude-sonnet-5\n    role: reviwer\n")
	require.ErrorContains(t, err, `fermata.yaml:4: agents.a.role: there is no role "reviwer"`)
	require.ErrorContains(t, err, "reviewer")
	_, err = load(t, "agents:\n  a: {model: anthropic/claude-sonnet-5, role: reviewer, profile: none}\n")
	require.ErrorContains(t, err, "profile must be one of")
}
