package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// A directory outside is refused, and the same one is allowed where it is named;
// what holds secrets stays refused there, and so does what lies beside it (HA-114,
// HA-117).
func TestExternalRoots(t *testing.T) {
	outside := t.TempDir()
	for name, text := range map[string]string{"notes/a.txt": "hello", "notes/.env": "KEY=1", "other.txt": "no"} {
		path := filepath.Join(outside, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	notes := filepath.Join(outside, "notes")
	closed, open := setup(t, nil), setup(t, &workspace.Options{ExternalRoots: []string{notes}})
	path := filepath.Join(notes, "a.txt")
	_, err := closed.do(workspace.ReadTool, args{"path": path})
	require.ErrorIs(t, err, agent.CodeDenied)
	text, err := open.do(workspace.ReadTool, args{"path": path})
	require.NoError(t, err)
	require.Contains(t, text, "hello")
	_, err = open.do(workspace.WriteTool, args{"path": filepath.Join(notes, "b.txt"), "content": "new"})
	require.NoError(t, err)
	for _, p := range []string{filepath.Join(notes, ".env"), filepath.Join(outside, "other.txt"), notes + "/../other.txt", "../notes/a.txt"} {
		_, err := open.do(workspace.ReadTool, args{"path": p})
		require.ErrorIs(t, err, agent.CodeDenied, p)
	}
	_, err = workspace.Open(t.TempDir(), &workspace.Options{ExternalRoots: []string{"notes"}})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}
