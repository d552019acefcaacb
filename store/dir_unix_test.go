//go:build unix

package store_test

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// Whoever can write to the folder puts anything instead of a chunk or a head: it is
// damaged, and neither read to its end nor waited for. Other sessions are listed all the same.
func TestWhatIsNoFileIsDamaged(t *testing.T) {
	const name = "ab-cd"
	for what, put := range map[string]func(path string) error{
		"a folder":       func(path string) error { return os.Mkdir(path, 0o700) },
		"a pipe":         func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a device":       func(path string) error { return os.Symlink("/dev/zero", path) },
		"without an end": func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)) },
	} {
		t.Run(what, func(t *testing.T) {
			root := t.TempDir()
			d, err := store.OpenDir(root, nil)
			require.NoError(t, err)
			require.NoError(t, d.PutHead(t.Context(), store.Head{Session: "b", Version: 1}))
			require.NoError(t, os.Mkdir(filepath.Join(root, "chunks", "ab"), 0o700))
			require.NoError(t, put(filepath.Join(root, "chunks", "ab", name)))
			require.NoError(t, put(filepath.Join(root, "heads", base64.RawURLEncoding.EncodeToString([]byte("a"))+".json")))
			_, err = d.Chunk(t.Context(), name)
			require.ErrorIs(t, err, agent.CodeChunkDamaged)
			_, err = d.ChunkStart(t.Context(), name, 10)
			require.ErrorIs(t, err, agent.CodeChunkDamaged)
			_, err = d.Head(t.Context(), "a")
			require.ErrorIs(t, err, agent.CodeChunkDamaged)
			var good, damaged []string
			for h, err := range d.Heads(t.Context(), "") {
				if err == nil {
					good = append(good, h.Session)
				} else {
					require.ErrorIs(t, err, agent.CodeChunkDamaged)
					damaged = append(damaged, h.Session)
				}
			}
			require.Equal(t, []string{"b"}, good)
			require.Equal(t, []string{"a"}, damaged)
		})
	}
}
