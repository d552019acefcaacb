package secret_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
)

func TestKeysFromFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	get := func(value, path string) (string, error) {
		t.Setenv("A_KEY", value)
		t.Setenv("A_KEY_FILE", path)
		return secret.Get("A_KEY")
	}
	good := file("good", " k1:s3cret\n", 0o440)
	link := filepath.Join(dir, "link") // as Kubernetes mounts a secret
	require.NoError(t, os.Symlink(good, link))
	for _, path := range []string{good, link} {
		text, err := get("", path)
		require.NoError(t, err)
		require.Equal(t, "k1:s3cret", text)
	}
	text, err := get(" k1:other ", "")
	require.NoError(t, err)
	require.Equal(t, "k1:other", text)
	text, err = get("", "")
	require.NoError(t, err)
	require.Empty(t, text)
	require.False(t, secret.IsSet("A_KEY"))

	for says, path := range map[string]string{
		"no such file":        dir + "/none",
		"is no regular file":  dir,
		"is empty":            file("empty", " \n", 0o600),
		"has more than 65536": file("long", strings.Repeat("s3cret", 1<<14), 0o600),
	} {
		_, err := get("", path)
		require.ErrorIs(t, err, agent.CodeInvalidInput, says)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "A_KEY_FILE: ")
		require.NotContains(t, err.Error(), "s3cret")
	}
	_, err = get("k1:s3cret", good)
	require.ErrorContains(t, err, "A_KEY and A_KEY_FILE are both set")
	if runtime.GOOS == "windows" {
		return
	}
	for _, mode := range []os.FileMode{0o444, 0o602, 0o644, 0o666} {
		_, err := get("", file("open", "s3cret", mode))
		require.ErrorIs(t, err, agent.CodeInvalidInput, mode)
		require.ErrorContains(t, err, "others may read or write")
	}
}
