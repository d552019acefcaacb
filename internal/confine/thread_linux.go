package confine

import (
	"fmt"
	"math"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// thread calls do on a thread of its own. The thread ends with do, together with the
// rights that it dropped, since its goroutine never unlocks it.
func thread(do func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			do()
			return
		}
		// The first thread can't end. While it is locked here, another one is taken.
		defer runtime.UnlockOSThread()
		begun := make(chan struct{})
		thread(func() { close(begun); do() })
		<-begun
	}()
}

// launch starts a program on a thread that has dropped its rights. The program inherits
// that; other threads of this process do not. The thread lives until release is called:
// the kernel ends the program together with the thread, and so with this process.
func launch(cmd *exec.Cmd, give func() error) (release func(), err error) {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done, over := make(chan error, 1), make(chan struct{})
	thread(func() {
		err := give()
		if err == nil {
			err = cmd.Start()
		}
		// Returning would end the thread, and with it the program (Pdeathsig).
		if done <- err; err == nil {
			<-over
		}
	})
	return sync.OnceFunc(func() { close(over) }), <-done
}

// giveFirst drops what no program gets, whatever confines it: rights of setuid files, and
// descriptors that this process inherited.
func giveFirst() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("descriptors: %w", err)
	}
	return nil
}

// giveAll drops all rights that a program does not get. rules is Landlock's descriptor,
// -1 if the kernel lacks it.
func giveAll(rules int, filter, network bool) error {
	if err := giveFirst(); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if rules >= 0 {
		if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
			return fmt.Errorf("landlock: %w", errno)
		}
	}
	if filter {
		if err := installFilter(network); err != nil {
			return fmt.Errorf("seccomp: %w", err)
		}
	}
	return nil
}

// dropCapabilities drops all capabilities of this thread. Under no_new_privs no program
// that it starts can get them back. Without this, root's programs could leave root's
// files behind (CHOWN, FOWNER, DAC_OVERRIDE, FSETID), and CAP_PERFMON could look into
// other processes despite Landlock.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}
