package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/tool/workspace"
	"github.com/stretchr/testify/require"
)

// Whatever a model writes as a path: it leads to a place in the workspace that
// is not protected, or nowhere; and what is outside is never read.
func FuzzPlace(f *testing.F) {
	base := f.TempDir()
	root := filepath.Join(base, "root")
	require.NoError(f, os.MkdirAll(filepath.Join(root, "a", "b"), 0o755))
	require.NoError(f, os.WriteFile(filepath.Join(base, "secret"), []byte("s3cret"), 0o644))
	for _, path := range []string{"a/file", "a/b/.env", ".env"} {
		require.NoError(f, os.WriteFile(filepath.Join(root, path), []byte("text of "+path), 0o644))
	}
	for link, target := range map[string]string{
		"up": "..", "out": "../secret", "abs": base, "in": "a/b", "env": ".env", "a/b/back": "../..", "self": ".", "loop": "loop", "a/up": "../..",
	} {
		require.NoError(f, os.Symlink(target, filepath.Join(root, link)))
	}
	w, err := workspace.Open(root, &workspace.Options{Home: f.TempDir()})
	require.NoError(f, err)
	f.Cleanup(func() { w.Close() })
	b := bench{Workspace: w, root: root}
	for _, path := range []string{
		"a/file", "../secret", root + "/a/file", base + "/secret", "up/secret", "self/self/in/../file", "in/back/up/secret", "env", "a\x00b",
		"loop/x", "./a/./b/.ENV", "", ".", "a/up/secret", "abs/root/a/file", "//secret", "a/b/new/file",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		place, err := w.Place(path)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		require.True(t, filepath.IsLocal(place), "%q", place)
		require.False(t, workspace.Sensitive(place), "%q", place)
		real, err := filepath.EvalSymlinks(filepath.Join(root, place))
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err == nil {
			require.Equal(t, filepath.Join(root, place), real)
		}
		text, err := b.do("fs_read", args{"path": path})
		if err == nil {
			require.True(t, strings.HasPrefix(text, "text of a/file"), "%q gave %q", path, text)
		}
	})
}
