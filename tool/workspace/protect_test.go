package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// guarded is a workspace with an agents file, an MCP server's folder and a data directory
// in it.
func guarded(t *testing.T) bench {
	root := t.TempDir()
	in := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	b := bench{root: root, outside: t.TempDir()}
	for name, text := range map[string]string{"conf/fermata.yaml": "agents", "server/bin/tickets": "program", "data/store/log": "s3cret", "plain": "text"} {
		b.put(t, name, text)
	}
	b.link(t, "conf", "way")
	b.link(t, "fermata.yaml", "conf/alias")
	require.NoError(t, os.Link(in("conf/fermata.yaml"), in("hard")))
	w, err := workspace.Open(root, &workspace.Options{
		Home: t.TempDir(), AsRoot: true, Private: []string{in("data"), in("keys/approval")},
		Protect: []string{in("way/fermata.yaml"), in("server"), in("models/script.yaml")},
	})
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	b.Workspace = w
	return b
}

// What decides what runs is not written by fs_write, by whatever name.
func TestProtectedPathsAreNotWritten(t *testing.T) {
	b := guarded(t)
	const words = "belongs to the worker, and no tool may touch it"
	for _, path := range []string{
		"conf/fermata.yaml", "way/fermata.yaml", "conf/alias", "conf/FERMATA.yaml", "hard", filepath.Join(b.root, "conf/fermata.yaml"), "conf/../way/./fermata.yaml",
		"server/bin/tickets", "server/new", "server/deep/er/new", "SERVER/../server/x", "models/script.yaml", "models/other",
		"data/store/log", "data/new", "keys/approval",
	} {
		b.refused(t, workspace.WriteTool, args{"path": path, "content": "evil"}, words)
	}
	b.refused(t, workspace.WriteTool, args{"path": "conf/fermata.yaml", "old": "agents", "new": "evil"}, words)
	for path, text := range map[string]string{"conf/fermata.yaml": "agents", "server/bin/tickets": "program", "data/store/log": "s3cret"} {
		require.Equal(t, text, b.get(t, path))
	}
	for _, path := range []string{"models", "keys", "server/deep", "server/new"} {
		require.NoFileExists(t, filepath.Join(b.root, path))
		require.NoDirExists(t, filepath.Join(b.root, path))
	}
	// All else is.
	for _, path := range []string{"plain", "conf/other.yaml", "elsewhere/fermata.yaml"} {
		b.ok(t, workspace.WriteTool, args{"path": path, "content": "new"})
	}
	// A path that has moved is still known.
	require.NoError(t, os.Rename(filepath.Join(b.root, "server"), filepath.Join(b.root, "moved")))
	require.NoError(t, os.Symlink("moved", filepath.Join(b.root, "server")))
	b.refused(t, workspace.WriteTool, args{"path": "moved/bin/tickets", "content": "evil"}, words)
}

// What is private is not read either.
func TestPrivatePathsAreNotRead(t *testing.T) {
	b := guarded(t)
	b.refused(t, workspace.ReadTool, args{"path": "data/store/log"}, "belongs to the worker")
	b.refused(t, workspace.ListTool, args{"path": "data/store"}, "belongs to the worker")
	require.NotContains(t, b.ok(t, workspace.GrepTool, args{"pattern": "s3cret"}), "data/store/log")
	require.NotContains(t, b.ok(t, workspace.ListTool, args{"path": ".", "depth": 5}), "log")
	require.Contains(t, b.ok(t, workspace.ReadTool, args{"path": "conf/fermata.yaml"}), "agents", "what is protected is")
	_, err := workspace.Open(filepath.Join(b.root, "data", "store"), &workspace.Options{Private: []string{filepath.Join(b.root, "data")}})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}

// Commands are refused where they could write what is protected: the kernel allows whole
// directories.
func TestShellIsRefusedOverProtectedPaths(t *testing.T) {
	b := guarded(t)
	require.ErrorIs(t, b.CheckShell(), agent.CodeDenied)
	require.ErrorContains(t, b.CheckShell(), filepath.Join(b.root, "way/fermata.yaml"))
	b.refused(t, workspace.ShellTool, args{"command": "echo evil > conf/fermata.yaml"}, "this worker may not run commands")
	require.Equal(t, "agents", b.get(t, "conf/fermata.yaml"))
	require.NoError(t, b.CheckWrite())

	root := t.TempDir()
	check := func(o workspace.Options) error {
		o.AsRoot, o.Protect = true, append(o.Protect, filepath.Join(b.root, "conf/fermata.yaml"))
		w, err := workspace.Open(root, &o)
		require.NoError(t, err)
		defer w.Close()
		return w.CheckShell()
	}
	require.NoError(t, check(workspace.Options{}))
	require.ErrorIs(t, check(workspace.Options{Write: []string{b.root}}), agent.CodeDenied)
	require.ErrorIs(t, check(workspace.Options{Home: filepath.Join(b.root, "conf")}), agent.CodeDenied)
	require.NoError(t, check(workspace.Options{Read: []string{b.root}}))
	require.ErrorIs(t, check(workspace.Options{Read: []string{b.root}, Private: []string{filepath.Join(b.root, "data")}}), agent.CodeDenied)
	require.NoError(t, check(workspace.Options{Protect: []string{filepath.Dir(root)}}), "a workspace may lie in a server's folder")

	whole, err := workspace.Open(root, &workspace.Options{Protect: []string{root}})
	require.NoError(t, err)
	defer whole.Close()
	require.ErrorIs(t, whole.CheckWrite(), agent.CodeDenied)
}
