package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/disk"
)

// A full disk is named by every command that looks, by doctor and by the worker's log.
func TestFullDisksAreSaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	d := b.start("dev", "--addr", b.addr)
	d.until("ready")
	require.Zero(t, b.run("run", "reader", "What do the notes say?", "--session", "s-1").exit)
	data := filepath.Join(b.data, "fermata")
	dirs := map[string]string{"data directory": data, "store": filepath.Join(data, "store")}
	looks := [][]string{{"show", "s-1"}, {"ls"}, {"attach", "s-1"}, {"run", "reader", "x", "--detach"}}
	for _, args := range looks {
		r := b.run(args...)
		require.Zero(t, r.exit, r.err)
		require.NotContains(t, r.err, "is full")
	}
	require.Contains(t, b.run("doctor").out, "MiB free for the data directory "+data+"\n")
	require.NotContains(t, d.end(syscall.SIGTERM).err, "disk full")
	d = b.start("dev", "--addr", b.addr)
	d.until("ready")
	for what, dir := range dirs {
		t.Run(what, func(t *testing.T) {
			mark := filepath.Join(dir, fullMark)
			require.NoError(t, os.WriteFile(mark, nil, 0o600))
			want := "the disk of the " + what + " " + dir + " is full, it has 4096 bytes left: free some space"
			for _, args := range looks {
				require.Contains(t, b.run(args...).err, "fermata: warning: "+want)
			}
			r := b.run("doctor")
			require.Equal(t, 1, r.exit)
			require.Contains(t, r.out, "FAIL disk        "+want)
			require.NoError(t, os.Remove(mark))
		})
	}
	d.end(syscall.SIGTERM)
	for _, dir := range dirs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fullMark), nil, 0o600))
	}
	d = b.start("dev", "--addr", b.addr)
	d.until("ready")
	r := d.end(syscall.SIGTERM)
	for _, dir := range dirs {
		require.Regexp(t, `disk full.*"?path"?[=:] ?"?`+dir+`\b`, r.err)
	}
}

// What is free is asked of the system.
func TestFreeSpaceIsMeasured(t *testing.T) {
	free, err := disk.Measure(t.TempDir())
	require.NoError(t, err)
	require.Positive(t, free)
	_, err = disk.Measure(filepath.Join(t.TempDir(), "gone"))
	require.Error(t, err)
}
