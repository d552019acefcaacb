package workspace_test

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody runs f on a thread that may touch only what everybody may: modes of
// files mean nothing to root. The thread ends with it.
func asNobody(t *testing.T, f func()) {
	if os.Getuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		unix.RawSyscall(unix.SYS_SETFSUID, 65534, 0, 0)
		f()
	}()
	<-done
}
