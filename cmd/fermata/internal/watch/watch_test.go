package watch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A change is reported when its files have come to rest, once, with what is new, written and gone. It comes
// again until it was reported, and everybody who sees the same gives it the same id.
func TestChanges(t *testing.T) {
	dir := t.TempDir()
	at := time.Unix(1_000_000, 0)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		at = at.Add(time.Second)
		require.NoError(t, os.Chtimes(path, at, at))
		return path
	}
	old := write("old", "1")
	f, err := New(dir)
	require.NoError(t, err)
	twin, err := New(dir)
	require.NoError(t, err)
	look := func(f *Files) *Change {
		c, err := f.Look()
		require.NoError(t, err)
		return c
	}
	require.Nil(t, look(f))

	deep := write("a/b/deep", "1")
	require.Nil(t, look(f), "it may still be written")
	write("a/b/deep", "12")
	require.Nil(t, look(f))
	require.NoError(t, os.Remove(old))
	require.Nil(t, look(f))
	c := look(f)
	require.Equal(t, []any{[]string{deep}, []string{old}, 0}, []any{c.Changed, c.Removed, c.Left})
	require.Equal(t, c.ID, look(f).ID, "nobody has reported it")
	require.Nil(t, look(twin))
	require.Equal(t, c.ID, look(twin).ID)
	f.Reported()
	require.Nil(t, look(f))

	write("a/b/deep", "21") // as long as before
	require.Nil(t, look(f))
	require.NotEqual(t, c.ID, look(f).ID)
}

// A file that is written without end is reported all the same, and a list has an end.
func TestChangesWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	f, err := New(dir)
	require.NoError(t, err)
	var c *Change
	looks := 0
	for ; c == nil; looks++ {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "log"), []byte(strings.Repeat("x", looks)), 0o600))
		c, err = f.Look()
		require.NoError(t, err)
	}
	require.Equal(t, maxLooks, looks)
	for i := range maxListed + 7 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "f"+strings.Repeat("i", i)), nil, 0o600))
	}
	_, err = f.Look()
	require.NoError(t, err)
	c, err = f.Look()
	require.NoError(t, err)
	require.Equal(t, []int{maxListed, 8}, []int{len(c.Changed), c.Left})

	_, err = New(filepath.Join(dir, "nowhere"))
	require.ErrorIs(t, err, agent.CodeNotFound)
}
