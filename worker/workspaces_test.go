package worker_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool/workspace"
	"github.com/fermata-agents/fermata/worker"
)

// A worker that can't watch what its daemons name does not start, and says what to do (HA-91).
func TestWatchedPathsAreChecked(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(root, "out")))
	w, err := workspace.Open(root, nil)
	require.NoError(t, err)
	defer w.Close()
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	d := &agent.Daemon{Watch: []string{"inbox"}}
	o := worker.Options{Store: dir, Models: map[string]model.Model{"m": testsuite.NewScript()}, Agents: []agent.Definition{{Name: "watcher", Model: "m", Daemon: d}}}
	_, err = o.Components()
	require.ErrorContains(t, err, "agent watcher: daemon.watch: the worker has no workspace: set worker.Options.Workspaces")
	o.Workspaces = w
	_, err = o.Components()
	require.NoError(t, err)
	d.Watch[0] = "out/inbox"
	_, err = o.Components()
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.ErrorContains(t, err, "agent watcher: daemon.watch[0]: watch refused: out/inbox is outside the workspace")
}

// A worker that can't make the workspaces that its agents name does not start, and says what to do.
func TestWorkspacesAreChecked(t *testing.T) {
	w, err := workspace.Open(t.TempDir(), &workspace.Options{Own: filepath.Join(t.TempDir(), "own")})
	require.NoError(t, err)
	defer w.Close()
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	o := worker.Options{
		Store: dir, Models: map[string]model.Model{"m": testsuite.NewScript()},
		Agents: []agent.Definition{
			{Name: "lead", Model: "m", Agents: []agent.SubAgent{{Agent: "coder", Workspace: &agent.OwnWorkspace{Kind: agent.WorkspaceWorktree}}}},
			{Name: "coder", Model: "m"},
		},
	}
	_, err = o.Components()
	require.ErrorContains(t, err, "agent lead: agents[0]: workspace: the worker has no workspace: set worker.Options.Workspaces")
	o.Workspaces = w
	_, err = o.Components()
	require.NoError(t, err)
	t.Setenv("PATH", t.TempDir())
	_, err = o.Components()
	require.ErrorContains(t, err, "install git 2.38 or later, or write kind: directory")
	o.Agents[0].Agents[0].Workspace.Kind = agent.WorkspaceDirectory
	_, err = o.Components()
	require.NoError(t, err)
}
