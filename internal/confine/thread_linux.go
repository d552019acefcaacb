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

// thread does something on a thread of its own, which ends with it and with all that it has
// given up, since its goroutine never unlocks it.
func thread(do func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			do()
			return
		}
		// The first thread can't end. As long as it is held here, another is taken.
		defer runtime.UnlockOSThread()
		begun := make(chan struct{})
		thread(func() { close(begun); do() })
		<-begun
	}()
}

// launch starts a program on a thread that has given up its rights. The program inherits
// that; this process' other threads do not. The thread lives until release is called, since
// the kernel ends the program with it: so it ends with this process, too.
func launch(cmd *exec.Cmd, give func() error) (release func(), err error) {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done, over := make(chan error, 1), make(chan struct{})
	thread(func() {
		err := give()
		if err == nil {
			err = cmd.Start()
		}
		if done <- err; err == nil {
			<-over
		}
	})
	return sync.OnceFunc(func() { close(over) }), <-done
}

// giveFirst takes from a thread what no program gets, whatever holds it: rights of files with
// setuid bits, and descriptors that this process was given when it was started.
func giveFirst() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("descriptors: %w", err)
	}
	return nil
}

// giveAll takes from a thread all rights that a program does not get. rules are Landlock's,
// a descriptor; -1 where the kernel lacks it.
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

// dropCapabilities takes all capabilities from this thread; under no_new_privs, no program that
// it starts gets them back. With those about files (CHOWN, FOWNER, DAC_OVERRIDE, FSETID)
// root's programs could make files of root's that outlive them, and with CAP_PERFMON look into
// other processes past Landlock.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}
