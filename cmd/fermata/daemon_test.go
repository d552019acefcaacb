package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Without a task only a daemon is run; the schedule's input is checked before the
// server is told of it.
func TestRunWithoutATask(t *testing.T) {
	alone(t)
	require.NoError(t, os.WriteFile("fermata.yaml", []byte(`
agents:
  reviewer: {model: "script:replies.yaml"}
  watcher: {model: "script:replies.yaml", daemon: {every: 1h, topics: [orders.paid]}}
`), 0o600))
	require.NoError(t, os.WriteFile("replies.yaml", []byte("replies:\n  - {text: Nothing new.}\n"), 0o600))
	r := inProcess(t, "run", "reviewer")
	require.Equal(t, agent.CodeInvalidInput.ExitStatus(), r.exit)
	require.Contains(t, r.err, `agent reviewer is no daemon: say in quotes what to do, as in fermata run reviewer "…"`)
	r = inProcess(t, "run", "watcher", "--session", "desk")
	require.Equal(t, 3, r.exit, "%s%s", r.out, r.err)
	require.Contains(t, r.out, "orders.paid")
	r = inProcess(t, "run", "reviewer", "")
	require.Equal(t, agent.CodeInvalidInput.ExitStatus(), r.exit)
	require.Contains(t, r.err, "the task is blank")
}
