package store_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite/conformance"
)

func TestWhatACrashLeftIsRemoved(t *testing.T) {
	root := t.TempDir()
	_, err := store.OpenDir(root, nil)
	require.NoError(t, err)
	dead, writing := filepath.Join(root, "new", "dead"), filepath.Join(root, "new", "writing")
	for _, path := range []string{dead, writing} {
		require.NoError(t, os.WriteFile(path, []byte("half a ch"), 0o600))
	}
	then := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(dead, then, then))
	_, err = store.OpenDir(root, nil)
	require.NoError(t, err)
	require.NoFileExists(t, dead)
	require.FileExists(t, writing)
}

// Files are a store as every other (OA-89).
func TestDirIsAStore(t *testing.T) {
	conformance.Store(t, func(t *testing.T) store.Store {
		d, err := store.OpenDir(t.TempDir(), nil)
		require.NoError(t, err)
		return d
	})
}

// A chunk is as young as its put, though a system may give its file a time of some
// milliseconds ago: else a collection would take it for one from before.
func TestAChunkIsNoOlderThanItsPut(t *testing.T) {
	d, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	before := time.Now()
	require.NoError(t, d.PutChunk(t.Context(), "00-11", []byte("x")))
	deleted, err := d.DeleteChunk(t.Context(), "00-11", before)
	require.NoError(t, err)
	require.False(t, deleted)
}

// A folder that is away, or in whose place another one stands, is no empty store: nothing
// that is missing in it is called deleted, and nothing is made there.
func TestAFolderThatIsAwayIsNoEmptyStore(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	d, err := store.OpenDir(root, nil)
	require.NoError(t, err)
	require.False(t, store.IsDir(root))
	id, err := store.ID(t.Context(), d)
	require.NoError(t, err)
	require.True(t, store.IsDir(root))
	name := store.ChunkPrefix("s") + ".0a"
	away := func() {
		t.Helper()
		_, err := d.Head(t.Context(), "s")
		require.ErrorIs(t, err, agent.CodeStoreUnavailable)
		_, err = d.Chunk(t.Context(), name)
		require.ErrorIs(t, err, agent.CodeStoreUnavailable)
		_, err = d.ChunkStart(t.Context(), name, 10)
		require.ErrorIs(t, err, agent.CodeStoreUnavailable)
	}
	require.NoError(t, os.Rename(root, root+"-aside"))
	away()
	_, err = store.ID(t.Context(), d)
	require.ErrorIs(t, err, agent.CodeStoreUnavailable)
	require.ErrorIs(t, d.PutChunk(t.Context(), name, []byte("x")), agent.CodeStoreUnavailable)
	require.ErrorIs(t, d.PutHead(t.Context(), store.Head{Session: "s"}), agent.CodeStoreUnavailable)
	require.NoDirExists(t, root)

	other, err := store.OpenDir(root, nil)
	require.NoError(t, err)
	away()
	_, err = store.ID(t.Context(), other)
	require.NoError(t, err)
	away()

	require.NoError(t, os.RemoveAll(root))
	require.NoError(t, os.Rename(root+"-aside", root))
	_, err = d.Head(t.Context(), "s")
	require.ErrorIs(t, err, agent.CodeNotFound)
	back, err := store.ID(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, id, back)
}
