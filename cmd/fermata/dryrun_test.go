package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// HA-108: run --dry-run shows the start, and makes nothing: no server, no store, no run.
func TestRunDry(t *testing.T) {
	t.Chdir(t.TempDir())
	data := t.TempDir()
	require.NoError(t, os.Mkdir("project", 0o755))
	require.NoError(t, os.WriteFile("fermata.yaml", []byte(`
agents:
  critic:
    model: anthropic/claude-sonnet-5
    role: reviewer
    tools: [fs_read, fs_write]
    rules: [{do: ask, tools: [fs_write], reason: It changes files.}]
workspace: project
`), 0o600))
	look := func(args ...string) ran {
		return inProcess(t, append([]string{"run", "critic", "Read main.go", "--dry-run", "--data", data}, args...)...)
	}
	r := look()
	require.Zero(t, r.exit, r.err)
	for _, want := range []string{
		"agent         critic (nothing was started)", "role          reviewer", "reasoning     medium", "limits        30 turns of its own",
		"first request ", "of the 1000000 tokens", "fs_read", "made", "fs_write", "asked for", "It changes files.", "│ You are a reviewer.", "\n│ - ", "Read main.go",
	} {
		require.Contains(t, r.out, want)
	}
	r = look("--json")
	require.Zero(t, r.exit, r.err)
	var p agent.Preview
	require.NoError(t, json.Unmarshal([]byte(r.out), &p))
	require.Equal(t, "preview", p.Type)
	require.Equal(t, "claude-sonnet-5", p.Spec.Model[len("anthropic/"):])
	require.Positive(t, p.Request.Tokens)

	entries, err := os.ReadDir(data)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing was started")

	for _, wrong := range [][]string{{"--detach"}, {"--session", "a"}, {"--carry", "reset"}, {"--file", "fermata.yaml"}} {
		require.Equal(t, 2, look(wrong...).exit, wrong)
	}
}
