package confine_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/confine"
)

func stat(t *testing.T, path string) fs.FileInfo {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	return info
}

// A path is known by directory and name, by what it is, and by the symlinks that lead to it.
func TestPlacesAreKnownAgain(t *testing.T) {
	top := t.TempDir()
	in := func(names ...string) string { return filepath.Join(append([]string{top}, names...)...) }
	require.NoError(t, os.MkdirAll(in("w", "real", "deep"), 0o755))
	require.NoError(t, os.Mkdir(in("w", "none"), 0o755))
	require.NoError(t, os.WriteFile(in("w", "real", "f"), nil, 0o600))
	require.NoError(t, os.Symlink("w/real/deep/..", in("way")))
	require.NoError(t, os.Symlink("../../w/real/f", in("w", "real", "link")))
	require.NoError(t, os.Link(in("w", "real", "f"), in("w", "hard")))

	p := confine.LookUp([]string{in("way", "link")})
	for name, want := range map[string]bool{
		"way": true, "w/real/link": true, "w/real/f": true, "w/real/F": true, "w/hard": true, "w/real/new": false, "w/f": false, "w/real": false,
	} {
		path := in(filepath.FromSlash(name))
		require.Equal(t, want, p.Has(stat(t, filepath.Dir(path)), filepath.Base(path), stat(t, path)) != "", name)
	}
	require.Equal(t, in("way", "link"), p.In(in("w")))
	require.Equal(t, in("way", "link"), p.In(in("w", "real")))
	require.Equal(t, in("way", "link"), p.In(top))
	require.Empty(t, p.In(in("w", "none")))
	require.Empty(t, p.In(in("w", "real", "deep")))
	require.Empty(t, p.Containing(in("w", "real")))

	absent := confine.LookUp([]string{in("w", "none", "data", "deeper")})
	require.NotEmpty(t, absent.Has(stat(t, in("w", "none")), "data", nil), "where it will be")
	require.NotEmpty(t, absent.In(in("w")))
	require.Empty(t, absent.In(in("w", "real")))

	data := confine.LookUp([]string{in("w")})
	require.Equal(t, in("w"), data.Containing(in("way")), "by the symlink")
	require.Equal(t, in("w"), data.In(in("w")))
	require.Empty(t, data.Containing(top))
}
