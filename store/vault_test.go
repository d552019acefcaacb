package store_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

func TestVault(t *testing.T) {
	root := t.TempDir()
	require.Nil(t, store.NewVault(openDir(t, root)), "nothing is kept in plain")
	require.Nil(t, store.NewVault(store.Encrypt(openDir(t, root), ringOf(t))))

	s := store.Encrypt(openDir(t, root), ringOf(t, newKey(t, "k1")))
	v, ctx := store.NewVault(s), t.Context()
	for i := range 20 {
		require.NoError(t, v.PutSecret(ctx, "ana", "wiki", fmt.Appendf(nil, "s3cret-of-ana-%d", i)))
	}
	require.NoError(t, v.PutSecret(ctx, "bob", "wiki", []byte("s3cret-of-bob")))
	require.NoError(t, v.PutSecret(ctx, "", "wiki", []byte("s3cret-of-all")))
	other := store.NewVault(s)
	for session, want := range map[string]string{"ana": "s3cret-of-ana-19", "bob": "s3cret-of-bob", "": "s3cret-of-all"} {
		value, err := other.Secret(ctx, session, "wiki")
		require.NoError(t, err)
		require.Equal(t, want, string(value))
	}
	value, err := v.Secret(ctx, "ana", "tickets")
	require.NoError(t, err)
	require.Nil(t, value)

	files := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		require.NotContains(t, string(raw), "s3cret")
		if len(raw) > 40 {
			files++
		}
		return err
	}))
	require.Equal(t, 3, files, "what was replaced is gone")
}

// Secrets are no session's chunks, and go with the session.
func TestVaultAndSessions(t *testing.T) {
	s := store.Encrypt(openDir(t, t.TempDir()), ringOf(t, newKey(t, "k1")))
	v, log, ctx := store.NewVault(s), store.NewLog(s), t.Context()
	require.NoError(t, v.PutSecret(ctx, "ana", "wiki", []byte("s3cret")))
	_, err := log.Collect(ctx, 0, false)
	require.NoError(t, err)
	value, err := v.Secret(ctx, "ana", "wiki")
	require.NoError(t, err)
	require.Equal(t, "s3cret", string(value), "a collection leaves it")

	require.NoError(t, s.PutHead(ctx, store.Head{V: store.HeadVersion, Version: 1, Session: "ana", Status: agent.StatusCompleted}))
	_, err = log.Delete(ctx, "ana")
	require.NoError(t, err)
	value, err = v.Secret(ctx, "ana", "wiki")
	require.NoError(t, err)
	require.Nil(t, value)
}
