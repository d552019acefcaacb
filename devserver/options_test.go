package devserver

import (
	"net"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOptionsDefaults(t *testing.T) {
	for _, o := range []*Options{nil, {}} {
		assert.False(t, o.inMemory())
		assert.Equal(t, "default", o.namespace())
		assert.Equal(t, 90*24*time.Hour, o.retention())
		assert.NotNil(t, o.logger())
		addr, err := o.addr()
		require.NoError(t, err)
		assert.Equal(t, "127.0.0.1:0", addr.String())
		assert.NoError(t, o.validate())
	}
}

func TestDefaultDataDir(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("the platform has a directory of its own")
	}
	t.Setenv("HOME", "/home/you")
	for xdg, want := range map[string]string{
		"":         "/home/you/.local/share/fermata",
		"/data":    "/data/fermata",
		"relative": "/home/you/.local/share/fermata",
	} {
		t.Setenv("XDG_DATA_HOME", xdg)
		dir, err := (*Options)(nil).dataDir()
		require.NoError(t, err)
		assert.Equal(t, filepath.FromSlash(want), dir)
	}
}

func TestAddrMustBeLoopback(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:7233", ":7233", "192.0.2.1:0", "example.com:7233", "[::]:0"} {
		_, err := Start(t.Context(), &Options{InMemory: true, Addr: addr})
		assert.ErrorContains(t, err, "is not loopback", addr)
	}
	for addr, want := range map[string]string{
		"localhost:7233": "127.0.0.1:7233",
		"127.0.0.2:0":    "127.0.0.2:0",
		"[::1]:80":       "[::1]:80",
	} {
		got, err := (&Options{Addr: addr}).addr()
		require.NoError(t, err)
		assert.Equal(t, want, got.String())
	}
}

func TestOptionsRefused(t *testing.T) {
	for text, o := range map[string]*Options{
		"exclude each other":    {InMemory: true, DataDir: "x"},
		"shorter than":          {InMemory: true, Retention: time.Minute},
		"missing port":          {InMemory: true, Addr: "127.0.0.1"},
		`port "http" is not a`:  {InMemory: true, Addr: "127.0.0.1:http"},
		"not a number from 0":   {InMemory: true, Addr: "127.0.0.1:65536"},
		"ContinueAsNewAt is -1": {InMemory: true, ContinueAsNewAt: -1},
		"UpdatesInFlight is -1": {InMemory: true, UpdatesInFlight: -1},
	} {
		_, err := Start(t.Context(), o)
		assert.ErrorContains(t, err, text)
	}
}

// A taken address is known before anything is written.
func TestAddrInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dir := t.TempDir()
	_, err = Start(t.Context(), &Options{DataDir: dir, Addr: l.Addr().String()})
	require.ErrorContains(t, err, "cannot listen on "+l.Addr().String())
	assert.ErrorContains(t, err, "in use")
	assert.NoFileExists(t, filepath.Join(dir, databaseName))

	// Nothing was left that would keep the next one from starting.
	assert.False(t, start(t, &Options{DataDir: dir}).Shared())
}
