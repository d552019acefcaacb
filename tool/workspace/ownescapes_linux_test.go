package workspace_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// evilConfig is a configuration in which every helper that git may start is a script.
func evilConfig(script string) string {
	return strings.ReplaceAll(`[core]
	repositoryformatversion = 0
	fsmonitor = EVIL
	hooksPath = EVILHOOKS
	pager = EVIL
	editor = EVIL
	sshCommand = EVIL
	askPass = EVIL
	alternateRefsCommand = EVIL
[filter "x"]
	clean = EVIL
	smudge = EVIL
	process = EVIL
	required = true
[merge "x"]
	driver = EVIL
[diff "x"]
	command = EVIL
	textconv = EVIL
[diff]
	external = EVIL
[commit]
	gpgSign = true
[gpg]
	program = EVIL
[include]
	path = EVIL
`, "EVIL", script)
}

// The runtime's git runs nothing that a repository, or a worktree, names (HA-103).
func TestWorktreeRunsNothing(t *testing.T) {
	b := repository(t, nil)
	b.put(t, ".gitattributes", "* filter=x merge=x diff=x\n")
	b.git(t, "add", "-A")
	b.git(t, "commit", "-q", "-m", "attributes")
	ran := filepath.Join(b.outside, "ran")
	script := filepath.Join(b.outside, "evil")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"$0 $*\" >> "+ran+"\n"), 0o755))
	for _, dir := range []string{script + "HOOKS", filepath.Join(b.root, ".git/hooks")} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
		for _, hook := range []string{"post-checkout", "post-index-change", "reference-transaction", "pre-commit", "post-commit", "post-merge", "post-rewrite", "pre-auto-gc", "fsmonitor-watchman"} {
			_ = os.Remove(filepath.Join(dir, hook))
			require.NoError(t, os.Symlink(script, filepath.Join(dir, hook)))
		}
	}
	b.put(t, ".git/config", evilConfig(script))
	b.put(t, ".git/info/attributes", "* filter=x merge=x diff=x\n")
	b.put(t, "nested/.git/config", evilConfig(script))
	b.make(t, own(name(1)))
	files := filepath.Join(filesOf(t, b, name(1)))
	evil := filepath.Join(files, "evil.git")
	for _, dir := range []string{evil, filepath.Join(files, "sub/.git")} {
		require.NoError(t, exec.Command("git", "init", "-q", "--bare", dir).Run())
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config"), []byte(evilConfig(script)), 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(files, ".git"), []byte("gitdir: "+evil+"\n"), 0o644))
	require.NoError(t, os.RemoveAll(filepath.Join(b.root, "nested")))
	b.write(t, name(1), "a.txt", "one\ntwo\nTHREE\n")
	b.put(t, "a.txt", "ONE\ntwo\nthree\n")
	out := b.end(t, own(name(1)), agent.WorkspaceMerge)
	require.Equal(t, agent.WorkspaceMerged, out.Result, out)
	require.Equal(t, "ONE\ntwo\nTHREE\n", b.get(t, "a.txt"))
	require.NoFileExists(t, ran)
}

// filesOf returns the directory of a sub-agent's workspace.
func filesOf(t testing.TB, b bench, at string) string {
	t.Helper()
	dir, err := b.Dir(&tool.Call{Workspace: at})
	require.NoError(t, err)
	return dir
}

// No symlink leads a merge, or a copy, out of a workspace (HA-103).
func TestWorktreeKeepsToItself(t *testing.T) {
	b := repository(t, nil)
	for n := range 3 {
		b.make(t, own(name(n)))
	}
	// A file, and a directory on the way to a file, become links to what is outside.
	files := filesOf(t, b, name(0))
	require.NoError(t, os.Remove(filepath.Join(files, "a.txt")))
	require.NoError(t, os.Symlink(filepath.Join(b.outside, "secret"), filepath.Join(files, "a.txt")))
	require.NoError(t, os.RemoveAll(filepath.Join(files, "dir")))
	require.NoError(t, os.WriteFile(filepath.Join(b.outside, "b.txt"), []byte("s3cret"), 0o644))
	require.NoError(t, os.Symlink(b.outside, filepath.Join(files, "dir")))
	_, err := b.in(t, name(0), workspace.ReadTool, args{"path": "a.txt"})
	require.ErrorIs(t, err, agent.CodeDenied)
	out := b.end(t, own(name(0)), agent.WorkspaceMerge)
	require.Equal(t, agent.WorkspaceConflict, out.Result)
	require.Equal(t, []string{"a.txt", "dir"}, out.Paths)
	require.NotContains(t, b.git(t, "--git-dir="+out.Repository, "log", "-p", "--all"), "s3cret")
	// The parent's directory becomes a link before a change of a file in it is merged.
	b.write(t, name(1), "dir/b.txt", "new\n")
	require.NoError(t, os.Rename(filepath.Join(b.root, "dir"), filepath.Join(b.root, "gone")))
	require.NoError(t, os.Symlink(b.outside, filepath.Join(b.root, "dir")))
	require.Equal(t, agent.WorkspaceMerged, b.end(t, own(name(1)), agent.WorkspaceMerge).Result)
	require.Equal(t, "new\n", b.get(t, "gone/b.txt"), "git follows the file, and not the link")
	text, err := os.ReadFile(filepath.Join(b.outside, "b.txt"))
	require.NoError(t, err)
	require.Equal(t, "s3cret", string(text))
	// A name is no path.
	for _, bad := range []string{"..", "../" + name(2), name(2) + "/..", "", "/etc"} {
		o := own(bad)
		require.Error(t, b.MakeOwn(t.Context(), o))
		_, err := b.EndOwn(t.Context(), o, agent.WorkspaceDrop)
		require.Error(t, err)
	}
	// Directories without rights, and a .git that leads elsewhere, do not keep the runtime from cleaning up.
	files = filesOf(t, b, name(2))
	require.NoError(t, os.MkdirAll(filepath.Join(files, "x/y"), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(files, "x"), 0))
	require.Equal(t, agent.WorkspaceDropped, b.end(t, own(name(2)), agent.WorkspaceDrop).Result)
	require.NoDirExists(t, files)
}

// A sub-agent's files of the worker, secrets and git's own files are not merged (HA-103).
func TestWorktreeMergesNoProtectedFile(t *testing.T) {
	o := &workspace.Options{}
	b := repository(t, o)
	b.put(t, "agents.yaml", "a")
	w, err := workspace.Open(b.root, &workspace.Options{Own: o.Own, AsRoot: true, Protect: []string{filepath.Join(b.root, "agents.yaml")}})
	require.NoError(t, err)
	defer w.Close()
	b.Workspace = w
	b.make(t, own(name(1)))
	b.write(t, name(1), "agents.yaml", "evil")
	b.write(t, name(1), "other", "x")
	out := b.end(t, own(name(1)), agent.WorkspaceMerge)
	require.Equal(t, []any{agent.WorkspaceConflict, []string{"agents.yaml"}}, []any{out.Result, out.Paths})
	require.Equal(t, "a", b.get(t, "agents.yaml"))
	require.NoFileExists(t, filepath.Join(b.root, "other"), "all or nothing")
}

// A command in a worktree has its directory and variables, compares with what it began with, and sees
// neither the owner's repository nor another workspace (HA-103).
func TestCommandsInWorktree(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s tool.Sandbox) {
		b := repository(t, &workspace.Options{Sandbox: s})
		b.make(t, own(name(1)))
		b.make(t, own(name(2)))
		files := filesOf(t, b, name(1))
		run := func(command string) string {
			text, err := b.in(t, name(1), workspace.ShellTool, args{"command": command})
			require.NoError(t, err)
			return text
		}
		text := run("pwd; echo stage=$STAGE; cat a.txt; git log --format=%s; echo changed > a.txt; git status --short")
		for _, part := range []string{files, "stage=review", "one\ntwo", "The workspace when lead/" + name(1) + " began", " M a.txt"} {
			require.Contains(t, text, part)
		}
		for _, escape := range []string{
			"echo x > ROOT/a.txt", "cat ROOT/a.txt", "echo x > ROOT/.git/refs/heads/main", "git commit -qam x", "git branch x", "cat ROOT/.git/config", "cat ROOT/.git/HEAD", "git -C ROOT log",
			"echo x > FILES/../made.json", "rm -rf FILES/../git", "rmdir FILES", "mv FILES FILES.old", "cat OTHER/a.txt", "echo x > OTHER/a.txt", "echo x > FILES/../git/HEAD", "echo x >> $(git rev-parse --git-dir)/config",
		} {
			command := strings.NewReplacer("ROOT", b.root, "FILES", files, "OTHER", filesOf(t, b, name(2))).Replace(escape)
			require.NotContains(t, run("("+command+") 2>&1 && echo escaped"), "escaped\n", escape)
			require.NotContains(t, run("("+command+") 2>&1 && echo esc''aped"), "escaped", escape)
		}
		out := b.end(t, own(name(1)), agent.WorkspaceMerge)
		require.Equal(t, agent.WorkspaceMerged, out.Result, out)
		require.Equal(t, "changed\n", b.get(t, "a.txt"))
	})
}

// A worker that is killed at any call of git leaves nothing that another attempt does not
// mend (HA-103).
func TestWorktreeSurvivesKills(t *testing.T) {
	if job := os.Getenv("OWN_JOB"); job != "" {
		workOn(t, job)
		return
	}
	testenv.Long(t)
	real, err := exec.LookPath("git")
	testenv.Need(t, err)
	dir := t.TempDir()
	count, when := filepath.Join(dir, "count"), filepath.Join(dir, "when")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "git"), []byte(fmt.Sprintf(`#!/bin/sh
n=$(cat %[1]s 2>/dev/null || echo 0); n=$((n+1)); echo $n > %[1]s
[ $n = "$(cat %[3]s)" ] && kill -9 $PPID && exit 1
exec %[2]s "$@"
`, count, real, when)), 0o755))
	attempt := func(b bench, o *workspace.Options, job, kill string) bool {
		_ = os.Remove(count)
		require.NoError(t, os.WriteFile(when, []byte(kill), 0o644))
		cmd := exec.Command(os.Args[0], "-test.run", "TestWorktreeSurvivesKills")
		cmd.Env = append(os.Environ(), "OWN_JOB="+job, "OWN_ROOT="+b.root, "OWN_DIR="+o.Own, "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			require.Contains(t, err.Error(), "killed", string(out))
		}
		return err == nil
	}
	for step, whole := 1, false; !whole; step++ {
		kill := fmt.Sprint(step)
		o := &workspace.Options{}
		b := repository(t, o)
		whole = attempt(b, o, "make", kill)
		b.make(t, own(name(1)))
		b.write(t, name(1), "a.txt", "one\ntwo\nTHREE\n")
		b.write(t, name(1), "c.txt", "c\n")
		b.put(t, "a.txt", "ONE\ntwo\nthree\n")
		whole = attempt(b, o, "end", kill) && whole
		out := b.end(t, own(name(1)), agent.WorkspaceMerge)
		require.Equal(t, agent.WorkspaceMerged, out.Result, "step %s: %v", kill, out)
		require.Equal(t, "ONE\ntwo\nTHREE\n", b.get(t, "a.txt"), kill)
		require.Equal(t, "c\n", b.get(t, "c.txt"), kill)
		require.Equal(t, "refs/heads/main", b.git(t, "for-each-ref", "--format=%(refname)"), kill)
		require.True(t, !whole || step > 10, "only %d calls of git", step)
	}
}

// workOn is the worker that is killed.
func workOn(t *testing.T, job string) {
	w, err := workspace.Open(os.Getenv("OWN_ROOT"), &workspace.Options{Own: os.Getenv("OWN_DIR")})
	require.NoError(t, err)
	if job == "make" {
		require.NoError(t, w.MakeOwn(t.Context(), own(name(1))))
		return
	}
	_, err = w.EndOwn(t.Context(), own(name(1)), agent.WorkspaceMerge)
	require.NoError(t, err)
}

// What a parent's model writes into the workspace's .git leads nobody anywhere: the runtime neither
// reads nor writes there, and a sub-agent's commands do not see it (HA-103).
func TestWorktreeKeepsOffTheWorkspacesGit(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s tool.Sandbox) {
		key := filepath.Join(t.TempDir(), "key")
		require.NoError(t, os.WriteFile(key, []byte("K3Y\n"), 0o600))
		b := repository(t, &workspace.Options{Sandbox: s, Private: []string{key}})
		require.NoError(t, os.WriteFile(filepath.Join(b.outside, "secret"), []byte("s3cret\n"), 0o644))
		before, err := os.ReadDir(b.outside)
		require.NoError(t, err)
		git := filepath.Join(b.root, ".git")
		for link, target := range map[string]string{"shallow": b.outside, "packed-refs": key, "refs/fermata": b.outside, "refs/heads/fermata": b.outside} {
			require.NoError(t, os.Symlink(target, filepath.Join(git, link)))
		}
		require.NoError(t, os.RemoveAll(filepath.Join(git, "objects")))
		require.NoError(t, os.Symlink(b.outside, filepath.Join(git, "objects")))
		b.make(t, own(name(1)))
		text, err := b.in(t, name(1), workspace.ShellTool, args{"command": "cat " + b.outside + "/secret " + key + "; echo new > a.txt"})
		require.NoError(t, err)
		require.NotContains(t, text, "s3cret")
		require.NotContains(t, text, "K3Y")
		require.Equal(t, agent.WorkspaceMerged, b.end(t, own(name(1)), agent.WorkspaceMerge).Result)
		after, err := os.ReadDir(b.outside)
		require.NoError(t, err)
		require.Equal(t, len(before), len(after))
	})
}

// Forged references and objects of another repository bring nothing into the workspace (HA-103).
func TestWorktreeMergesNoForgedRecord(t *testing.T) {
	b := repository(t, nil)
	other := filepath.Join(b.outside, "private")
	for _, args := range [][]string{{"init", "-q", "-b", "main", other}, {"-C", other, "commit", "-q", "--allow-empty", "-m", "1"}} {
		b.git(t, args...)
	}
	require.NoError(t, os.WriteFile(filepath.Join(other, "private.go"), []byte("private"), 0o644))
	b.git(t, "-C", other, "add", "-A")
	b.git(t, "-C", other, "commit", "-q", "-m", "2")
	b.make(t, own(name(1)))
	b.write(t, name(1), "a.txt", "child\n")
	b.put(t, ".git/objects/info/alternates", filepath.Join(other, ".git/objects")+"\n")
	for _, ref := range []string{"refs/fermata/merge/", "refs/heads/fermata/"} {
		at := filepath.Join(b.root, ".git", ref)
		require.NoError(t, os.MkdirAll(at, 0o755))
		require.NoError(t, os.Symlink(filepath.Join(other, ".git/refs/heads/main"), filepath.Join(at, name(1))))
	}
	out := b.end(t, own(name(1)), agent.WorkspaceMerge)
	require.Equal(t, []any{agent.WorkspaceMerged, []string{"a.txt"}}, []any{out.Result, out.Paths})
	require.NoFileExists(t, filepath.Join(b.root, "private.go"))
}

// Files are copied and merged byte for byte, whatever attributes say (HA-103).
func TestWorktreeKeepsBytes(t *testing.T) {
	b := repository(t, nil)
	texts := map[string]string{"id.txt": "$Id$\nmine\n", "lf.txt": "lf\nlf\n", "crlf.txt": "a\r\nb\r\n", "mixed.txt": "a\r\nb\n"}
	b.put(t, ".gitattributes", "*.txt text eol=crlf ident\n")
	for path, text := range texts {
		b.put(t, path, text)
	}
	b.make(t, own(name(1)))
	text, err := b.in(t, name(1), workspace.ShellTool, args{"command": "git status --short"})
	require.NoError(t, err)
	require.Contains(t, text, "(no output)", "the sub-agent's git compares bytes")
	b.write(t, name(1), "id.txt", "$Id$\nyours\n")
	require.Equal(t, agent.WorkspaceMerged, b.end(t, own(name(1)), agent.WorkspaceMerge).Result)
	texts["id.txt"] = "$Id$\nyours\n"
	for path, text := range texts {
		require.Equal(t, text, b.get(t, path))
	}
}

// A sub-agent that writes large files fails its own end, and costs the worker no memory (HA-103).
func TestWorktreeIsBounded(t *testing.T) {
	b := repository(t, nil)
	for n, command := range []string{"truncate -s 33M big", "for i in 1 2 3 4 5 6 7 8 9; do truncate -s 31M f$i; done", "mkdir -p " + strings.Repeat("d/", 101)} {
		b.make(t, own(name(n)))
		_, err := b.in(t, name(n), workspace.ShellTool, args{"command": command})
		require.NoError(t, err)
		_, err = b.EndOwn(t.Context(), own(name(n)), agent.WorkspaceMerge)
		require.ErrorIs(t, err, agent.CodeTooLarge, command)
		require.ErrorContains(t, err, "name what is generated in .gitignore")
	}
}

// A name that some git takes for its own is left out, and makes no later workspace fail (HA-103).
func TestWorktreeLeavesOutGitsNames(t *testing.T) {
	b := repository(t, nil)
	b.make(t, own(name(1)))
	files := filesOf(t, b, name(1))
	for _, dir := range []string{"git~1", ".GIT ", ".g\u200cit", "sub/.git", ".git::x"} {
		require.NoError(t, os.MkdirAll(filepath.Join(files, dir), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(files, dir, "config"), []byte("x"), 0o644))
	}
	require.NoError(t, os.Symlink("a.txt", filepath.Join(files, ".gitmodules")))
	require.Equal(t, agent.WorkspaceUnchanged, b.end(t, own(name(1)), agent.WorkspaceMerge).Result)
	b.put(t, "git~1/config", "x")
	b.make(t, own(name(2)))
	b.write(t, name(2), "a.txt", "x")
	require.Equal(t, agent.WorkspaceMerged, b.end(t, own(name(2)), agent.WorkspaceMerge).Result)
}

// What git says about an error is in no error that a model or a history gets.
func TestWorktreeErrorsQuoteNoGit(t *testing.T) {
	b := repository(t, nil)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "git"), []byte("#!/bin/sh\n[ $1 = version ] && echo git version 2.39.5 && exit\necho s3cret line >&2; exit 128\n"), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	err := b.MakeOwn(t.Context(), own(name(1)))
	require.Error(t, err)
	require.NotContains(t, err.Error(), "s3cret")
	require.NotContains(t, err.Error(), b.root)
}
