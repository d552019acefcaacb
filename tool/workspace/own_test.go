package workspace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// git runs git as the repository's owner does.
func (b bench) git(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

// repository is a workspace with a commit.
func repository(t *testing.T, o *workspace.Options) bench {
	t.Helper()
	if o == nil {
		o = &workspace.Options{}
	}
	o.Own = filepath.Join(t.TempDir(), "own")
	b := setup(t, o)
	b.git(t, "init", "-q", "-b", "main")
	b.put(t, "a.txt", "one\ntwo\nthree\n")
	b.put(t, "dir/b.txt", "b\n")
	b.put(t, ".gitignore", "ignored\n")
	b.git(t, "add", "-A")
	b.git(t, "commit", "-q", "-m", "first")
	return b
}

// fetched returns a file of a branch that was kept, as its owner gets it.
func (b bench) fetched(t testing.TB, out agent.WorkspaceOutcome, path string) string {
	t.Helper()
	b.git(t, "fetch", "-q", out.Repository, out.Branch)
	return b.git(t, "show", "FETCH_HEAD:"+path)
}

func own(name string) tool.OwnWorkspace {
	return tool.OwnWorkspace{Kind: agent.WorkspaceWorktree, Name: name, Session: "lead/" + name}
}

// name returns the nth name of a workspace.
func name(n int) string { return fmt.Sprintf("coder-%012x", n) }

func (b bench) make(t testing.TB, o tool.OwnWorkspace) {
	t.Helper()
	require.NoError(t, b.MakeOwn(t.Context(), o))
}

func (b bench) end(t testing.TB, o tool.OwnWorkspace, end agent.WorkspaceEnd) agent.WorkspaceOutcome {
	t.Helper()
	out, err := b.EndOwn(t.Context(), o, end)
	require.NoError(t, err)
	again, err := b.EndOwn(t.Context(), o, end)
	require.NoError(t, err)
	require.Equal(t, out, again, "another attempt finds what became of it")
	return out
}

// in calls a tool in a sub-agent's workspace.
func (b bench) in(t testing.TB, at, name string, args any) (string, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	require.NoError(t, err)
	for _, one := range b.Tools() {
		if one.Spec().Name == name {
			return one.Call(context.Background(), &tool.Call{Session: "lead/" + at, Tool: name, Workspace: at, Env: map[string]string{"STAGE": "review"}, Arguments: raw})
		}
	}
	t.Fatalf("there is no tool %s", name)
	return "", nil
}

func (b bench) write(t testing.TB, at, path, text string) {
	t.Helper()
	_, err := b.in(t, at, workspace.WriteTool, args{"path": path, "content": text})
	require.NoError(t, err)
}

// A worktree begins with the workspace's files as they are, also those that are not committed, without
// those that git ignores and those that usually hold secrets (HA-103).
func TestWorktreeBegins(t *testing.T) {
	b := repository(t, nil)
	b.put(t, "a.txt", "not committed\n")
	b.put(t, "new.txt", "new\n")
	b.put(t, "ignored", "x")
	b.put(t, ".env", "TOKEN=1")
	require.NoError(t, os.Remove(filepath.Join(b.root, "dir/b.txt")))
	b.make(t, own(name(1)))
	text, err := b.in(t, name(1), workspace.ListTool, args{"depth": 3})
	require.NoError(t, err)
	require.Contains(t, text, "a.txt")
	require.Contains(t, text, "new.txt")
	for _, not := range []string{"ignored  ", ".env", "b.txt"} {
		require.NotContains(t, text, not)
	}
	text, err = b.in(t, name(1), workspace.ReadTool, args{"path": "a.txt"})
	require.NoError(t, err)
	require.Contains(t, text, "not committed")
	require.Equal(t, "?? new.txt", b.git(t, "status", "--porcelain", "--", "new.txt"), "the owner's index is untouched")
	b.write(t, name(1), "a.txt", "mine\n")
	b.make(t, own(name(1)))
	text, err = b.in(t, name(1), workspace.ReadTool, args{"path": "a.txt"})
	require.NoError(t, err)
	require.Contains(t, text, "mine", "another attempt finds the same one")
	require.Equal(t, "not committed\n", b.get(t, "a.txt"))
}

// Of two sub-agents that write one file, the first is merged, and the second is kept on a branch (HA-103).
func TestWorktreeMerges(t *testing.T) {
	b := repository(t, nil)
	for n := range 3 {
		b.make(t, own(name(n)))
	}
	b.write(t, name(0), "a.txt", "ONE\ntwo\nthree\n")
	b.write(t, name(0), "made/deep.txt", "deep\n")
	b.write(t, name(1), "a.txt", "uno\ntwo\nthree\n")
	b.write(t, name(2), "a.txt", "one\ntwo\nTHREE\n")
	b.put(t, "parents.txt", "the parent works meanwhile\n")
	out := b.end(t, own(name(0)), agent.WorkspaceMerge)
	require.Equal(t, agent.WorkspaceOutcome{Kind: agent.WorkspaceWorktree, Name: name(0), Result: agent.WorkspaceMerged, Paths: []string{"a.txt", "made/deep.txt"}}, out)
	out = b.end(t, own(name(1)), agent.WorkspaceMerge)
	require.Equal(t, agent.WorkspaceConflict, out.Result)
	require.Equal(t, []string{"a.txt"}, out.Paths)
	require.Equal(t, "fermata/"+name(1), out.Branch)
	require.Equal(t, agent.WorkspaceMerged, b.end(t, own(name(2)), agent.WorkspaceMerge).Result)
	require.Equal(t, "ONE\ntwo\nTHREE\n", b.get(t, "a.txt"))
	require.Equal(t, "deep\n", b.get(t, "made/deep.txt"))
	require.Equal(t, "the parent works meanwhile\n", b.get(t, "parents.txt"))
	require.Equal(t, "uno\ntwo\nthree", b.fetched(t, out, "a.txt"))
	require.Equal(t, "refs/heads/main", b.git(t, "for-each-ref", "--format=%(refname)"), "the owner's repository is as it was")
	_, err := b.in(t, name(0), workspace.ReadTool, args{"path": "a.txt"})
	require.ErrorIs(t, err, tool.ErrElsewhere)
}

// Keep makes a branch, drop leaves nothing, and a worktree without changes is deleted (HA-103).
func TestWorktreeEnds(t *testing.T) {
	b := repository(t, nil)
	for n := range 3 {
		b.make(t, own(name(n)))
	}
	b.write(t, name(0), "a.txt", "kept\n")
	b.write(t, name(1), "a.txt", "dropped\n")
	kept := b.end(t, own(name(0)), agent.WorkspaceKeep)
	require.Equal(t, agent.WorkspaceKept, kept.Result)
	require.Equal(t, agent.WorkspaceDropped, b.end(t, own(name(1)), agent.WorkspaceDrop).Result)
	require.Equal(t, agent.WorkspaceUnchanged, b.end(t, own(name(2)), agent.WorkspaceMerge).Result)
	require.Equal(t, "one\ntwo\nthree\n", b.get(t, "a.txt"))
	require.Equal(t, "kept", b.fetched(t, kept, "a.txt"))
	b.git(t, "stash", "-q", "-u")
	b.git(t, "cherry-pick", "-n", "FETCH_HEAD")
	require.Equal(t, "kept\n", b.get(t, "a.txt"))
}

// A directory of its own is empty, and is kept or deleted (HA-103).
func TestDirectoryOfItsOwn(t *testing.T) {
	b := setup(t, &workspace.Options{Own: filepath.Join(t.TempDir(), "own")})
	o := own(name(1))
	o.Kind = agent.WorkspaceDirectory
	b.make(t, o)
	b.write(t, name(1), "f", "x")
	_, err := os.Stat(filepath.Join(b.root, "f"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, agent.WorkspaceKept, b.end(t, o, agent.WorkspaceKeep).Result)
	text, err := b.in(t, name(1), workspace.ReadTool, args{"path": "f"})
	require.NoError(t, err)
	require.Contains(t, text, "x")
	o.Name = name(2)
	b.make(t, o)
	require.Equal(t, agent.WorkspaceDropped, b.end(t, o, agent.WorkspaceDrop).Result)
}

// A sub-agent of a sub-agent copies its parent's worktree, and is merged into that (HA-103).
func TestWorktreeOfWorktree(t *testing.T) {
	b := repository(t, nil)
	b.make(t, own(name(1)))
	b.write(t, name(1), "a.txt", "above\n")
	below := own(name(2))
	below.Base = name(1)
	b.make(t, below)
	text, err := b.in(t, name(2), workspace.ReadTool, args{"path": "a.txt"})
	require.NoError(t, err)
	require.Contains(t, text, "above")
	b.write(t, name(2), "a.txt", "below\n")
	require.Equal(t, agent.WorkspaceMerged, b.end(t, below, agent.WorkspaceMerge).Result)
	require.Equal(t, "one\ntwo\nthree\n", b.get(t, "a.txt"))
	require.Equal(t, agent.WorkspaceMerged, b.end(t, own(name(1)), agent.WorkspaceMerge).Result)
	require.Equal(t, "below\n", b.get(t, "a.txt"))
}

// Thirty sub-agents at once do not get in each other's way.
func TestThirtyWorktrees(t *testing.T) {
	b := repository(t, nil)
	var all sync.WaitGroup
	errs := make([]error, 30)
	for n := range errs {
		all.Go(func() {
			o := own(name(n))
			if errs[n] = b.MakeOwn(context.Background(), o); errs[n] != nil {
				return
			}
			b.write(t, name(n), fmt.Sprintf("f%d", n), "x")
			var out agent.WorkspaceOutcome
			if out, errs[n] = b.EndOwn(context.Background(), o, agent.WorkspaceMerge); errs[n] == nil && out.Result != agent.WorkspaceMerged {
				errs[n] = fmt.Errorf("%v", out)
			}
		})
	}
	all.Wait()
	for n, err := range errs {
		require.NoError(t, err)
		require.Equal(t, "x", b.get(t, fmt.Sprintf("f%d", n)))
	}
}

// What is missing is said when the worker starts.
func TestCheckOwn(t *testing.T) {
	b := setup(t, &workspace.Options{Own: filepath.Join(t.TempDir(), "own")})
	require.NoError(t, b.CheckOwn(agent.WorkspaceDirectory))
	require.NoError(t, b.CheckOwn(agent.WorkspaceWorktree), "a workspace that is no repository will do")
	t.Setenv("PATH", t.TempDir())
	require.ErrorContains(t, b.CheckOwn(agent.WorkspaceWorktree), "install git 2.38 or later")
	inside := setup(t, nil)
	w, err := workspace.Open(inside.root, &workspace.Options{Own: filepath.Join(inside.root, "own")})
	require.NoError(t, err)
	defer w.Close()
	require.ErrorContains(t, w.CheckOwn(agent.WorkspaceDirectory), "name another directory")
}

// A workspace that is no git repository has worktrees too (HA-103).
func TestWorktreeWithoutRepository(t *testing.T) {
	b := setup(t, &workspace.Options{Own: filepath.Join(t.TempDir(), "own")})
	b.put(t, "a.txt", "one\n")
	b.make(t, own(name(1)))
	b.write(t, name(1), "a.txt", "two\n")
	require.Equal(t, agent.WorkspaceMerged, b.end(t, own(name(1)), agent.WorkspaceMerge).Result)
	require.Equal(t, "two\n", b.get(t, "a.txt"))
	require.NoDirExists(t, filepath.Join(b.root, ".git"))
}

// Odd names are copied and merged as they are, and patterns of .gitignore files mean what git
// means (HA-103).
func TestWorktreeNames(t *testing.T) {
	b := repository(t, nil)
	odd := []string{"-rf", "a\nb", ":(x)", `q"q`, `b\s`, "\xff", "ü", "sub/.gitignore.x", "*", "gdir/.gitignore/x"}
	for _, path := range odd {
		b.put(t, path, path)
	}
	b.put(t, "sub/.gitignore", "/build/\n*.log\n!keep.log\n")
	for _, path := range []string{"sub/build/x", "sub/y.log", "sub/deep/z.log", "sub/deep/ignored"} {
		b.put(t, path, "x")
	}
	for _, path := range []string{"sub/keep.log", "build/x"} {
		b.put(t, path, path)
		odd = append(odd, path)
	}
	b.make(t, own(name(1)))
	files := filesOf(t, b, name(1))
	for _, path := range odd {
		text, err := os.ReadFile(filepath.Join(files, path))
		require.NoError(t, err)
		require.Equal(t, path, string(text))
		require.NoError(t, os.WriteFile(filepath.Join(files, path), []byte("new"), 0o644))
	}
	for _, path := range []string{"sub/build", "sub/y.log", "sub/deep"} {
		require.NoFileExists(t, filepath.Join(files, path))
		require.NoDirExists(t, filepath.Join(files, path))
	}
	require.Equal(t, agent.WorkspaceMerged, b.end(t, own(name(1)), agent.WorkspaceMerge).Result)
	for _, path := range odd {
		require.Equal(t, "new", b.get(t, path))
	}
}

// A .gitignore that a sub-agent changes neither deletes a file of its parent nor overwrites one that
// the parent's .gitignore names (HA-103).
func TestWorktreeIgnores(t *testing.T) {
	b := repository(t, nil)
	b.put(t, "ignored", "the owner's\n")
	b.make(t, own(name(1)))
	b.make(t, own(name(2)))
	b.write(t, name(1), ".gitignore", "ignored\na.txt\n")
	require.Equal(t, agent.WorkspaceMerged, b.end(t, own(name(1)), agent.WorkspaceMerge).Result)
	require.Equal(t, "one\ntwo\nthree\n", b.get(t, "a.txt"))
	b.write(t, name(2), ".gitignore", "\n")
	b.write(t, name(2), "ignored", "evil")
	require.Equal(t, agent.WorkspaceConflict, b.end(t, own(name(2)), agent.WorkspaceMerge).Result)
	require.Equal(t, "the owner's\n", b.get(t, "ignored"))
}
