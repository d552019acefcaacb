package store_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
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
	testsuite.Store(t, func(t *testing.T) store.Store {
		d, err := store.OpenDir(t.TempDir(), nil)
		require.NoError(t, err)
		return d
	})
}
