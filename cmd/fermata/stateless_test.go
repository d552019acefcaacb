package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A stateless agent is run, and looked at, by its name alone (OA-112).
func TestAStatelessAgentIsRun(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("fermata.yaml", []byte("agents:\n  sorter: {model: \"script:s.yaml\", stateless: true}\n"), 0o600))
	require.NoError(t, os.WriteFile("s.yaml", []byte("replies:\n  - {text: spam, repeat: 9}\n"), 0o600))
	for _, flags := range [][]string{{"--dry-run"}, nil} {
		r := inProcess(t, append([]string{"run", "sorter", "Which mail?", "--data", t.TempDir()}, flags...)...)
		require.Zero(t, r.exit, r.err)
		require.Contains(t, r.out, map[bool]string{true: "sorter (nothing was started)", false: "spam"}[flags != nil])
	}
}
