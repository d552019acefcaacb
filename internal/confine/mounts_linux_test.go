package confine_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/fermata-agents/fermata/internal/confine"
)

// A path is found where its directory, or the file alone, is mounted a second time.
func TestPlacesAreFoundBehindMounts(t *testing.T) {
	top := t.TempDir()
	in := func(names ...string) string { return filepath.Join(append([]string{top}, names...)...) }
	for _, dir := range []string{"conf/deep", "work/dir with space", "other", "twice"} {
		require.NoError(t, os.MkdirAll(in(dir), 0o755))
	}
	for _, file := range []string{"conf/deep/f", "other/f"} {
		require.NoError(t, os.WriteFile(in(file), nil, 0o600))
	}
	p := confine.LookUp([]string{in("conf", "deep", "f")})
	done := make(chan error)
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with its mounts
		if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
			done <- err
			return
		}
		bind := func(from, to string) {
			if err := unix.Mount(in(from), in(to), "", unix.MS_BIND, ""); err != nil {
				done <- err
			}
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			done <- err
			return
		}
		for _, dir := range []string{"work", "other", "twice"} {
			require.Empty(t, p.In(in(dir)))
		}
		bind("conf", "work/dir with space")
		require.NotEmpty(t, p.In(in("work")), "a mount in it")
		require.NotEmpty(t, p.In(in("work", "dir with space")), "the mount itself")
		require.NotEmpty(t, p.In(in("work", "dir with space", "deep")), "a directory in the mount")
		bind("conf/deep/f", "other/f")
		require.NotEmpty(t, p.In(in("other")), "the file alone")
		require.Empty(t, p.In(in("twice")))
		bind("conf/deep", "twice")
		require.NotEmpty(t, p.In(in("twice")))
		require.NotEmpty(t, confine.LookUp([]string{in("conf")}).Containing(in("twice")))
	}()
	if err := <-done; err != nil {
		t.Skip("this user mounts nothing: ", err)
	}
}
