package workspace_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// watched is a workspace with a file at each name, which is also its text.
func watched(t *testing.T, files ...string) (w *workspace.Workspace, dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, f := range files {
		put(t, dir, f, f)
	}
	w, err := workspace.Open(dir, nil)
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	return w, dir
}

// put writes a file. Each has a later time than the one before, on every file system.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	clock = clock.Add(time.Second)
	require.NoError(t, os.Chtimes(path, clock, clock))
}

var clock = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A look names what has changed since the marks of another look (HA-91).
func TestWatch(t *testing.T) {
	paths := []string{"inbox", "todo.md", "later"}
	w, dir := watched(t, "inbox/a.txt", "inbox/sub/b.txt", "todo.md", "other.txt")
	require.NoError(t, os.Symlink(filepath.Join("..", "other.txt"), filepath.Join(dir, "inbox", "link")))
	var marks []agent.FileMark
	look := func() agent.FilesSeen {
		t.Helper()
		seen, err := w.Watch(t.Context(), paths, marks)
		require.NoError(t, err)
		marks = seen.Marks
		return seen
	}
	require.Empty(t, look().Changed, "there is nothing to compare with")
	before := marks
	put(t, dir, "other.txt", "it is not watched")
	require.Equal(t, agent.FilesSeen{Marks: before}, look())
	put(t, dir, "inbox/sub/b.txt", "B")
	put(t, dir, "later", "it is there now")
	require.Equal(t, []string{"inbox/sub/b.txt", "later"}, look().Changed)
	require.NoError(t, os.Remove(filepath.Join(dir, "todo.md")))
	require.NoError(t, os.Rename(filepath.Join(dir, "other.txt"), filepath.Join(dir, "inbox", "old.txt")))
	require.NoError(t, os.Chtimes(filepath.Join(dir, "inbox", "old.txt"), clock.Add(-time.Hour), clock.Add(-time.Hour)))
	require.Equal(t, []string{"inbox", "todo.md"}, look().Changed, "what is gone, or has an old time, is not named")
	for i := range 25 {
		put(t, dir, "inbox/"+strconv.Itoa(i), "")
	}
	seen := look()
	require.Len(t, seen.Changed, 20)
	require.Equal(t, 5, seen.More)
}

// What the file tools refuse is not watched: a path that leads outside, what hides a secret, and what
// belongs to the worker. Nothing below a watched directory leads outside either (HA-91).
func TestWatchStaysInside(t *testing.T) {
	w, dir := watched(t, "inbox/a.txt", ".env", "plain")
	outside := t.TempDir()
	put(t, outside, "secret", "")
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "out")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "inbox", "out")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "inbox", "file")))
	require.NoError(t, os.Symlink("inbox", filepath.Join(dir, "inside")))
	require.NoError(t, w.CheckWatch([]string{"inbox", "inside", "nowhere", "."}))
	for path, why := range map[string]string{"out": "is outside the workspace", "out/secret": "is outside the workspace", ".env": "usually hold secrets"} {
		err := w.CheckWatch([]string{path})
		require.ErrorIs(t, err, agent.CodeInvalidInput, path)
		require.ErrorContains(t, err, why)
	}
	paths := []string{".", "inside", "out", "out/secret", ".env", "plain/x"}
	first, err := w.Watch(t.Context(), paths, nil)
	require.NoError(t, err)
	put(t, outside, "secret", "changed")
	put(t, outside, "new", "")
	put(t, dir, ".env", "KEY=1")
	put(t, dir, ".git/HEAD", "main")
	second, err := w.Watch(t.Context(), paths, first.Marks)
	require.NoError(t, err)
	require.Equal(t, agent.FilesSeen{Marks: first.Marks}, second)
	put(t, dir, "inbox/a.txt", "new")
	second, err = w.Watch(t.Context(), paths, first.Marks)
	require.NoError(t, err)
	require.Equal(t, []string{"inbox/a.txt"}, second.Changed, "under one name, though two paths lead to it")

	// It was a directory when the worker began, and leads outside now.
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "inbox")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "inbox")))
	gone, err := w.Watch(t.Context(), []string{"inbox", "nowhere"}, nil)
	require.NoError(t, err)
	require.Equal(t, gone.Marks[1], gone.Marks[0])
}

// However long the names of files are and however deep they lie, a look is short, and so is what it returns.
func TestWatchIsBounded(t *testing.T) {
	w, dir := watched(t, "inbox/a.txt")
	first, err := w.Watch(t.Context(), []string{"inbox"}, nil)
	require.NoError(t, err)
	deep := strings.Repeat(strings.Repeat("d", 30)+"/", 31)
	for n := range 9 {
		put(t, dir, "inbox/"+deep+strconv.Itoa(n), "x")
	}
	seen, err := w.Watch(t.Context(), []string{"inbox"}, first.Marks)
	require.NoError(t, err)
	require.Len(t, seen.Changed, 2, "names of 2 kB")
	require.Equal(t, 7, seen.More)

	put(t, dir, "inbox/"+deep+"d/e", "x")
	again, err := w.Watch(t.Context(), []string{"inbox"}, seen.Marks)
	require.NoError(t, err)
	require.Equal(t, seen.Marks, again.Marks, "what lies deeper is not looked at")
}
