package confine

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/fermata-agents/fermata/tool"
)

// launch starts a program, held by the kernel as far as it can and as the policy wants.
func (p *Policy) launch(cmd *exec.Cmd) error {
	if p.Confine == tool.ConfineNever {
		return cmd.Start()
	}
	h := hold{rules: -1, filter: p.Kernel.Seccomp, network: p.Network}
	if p.Kernel.Landlock > 0 {
		rules, err := p.ruleset()
		if err != nil {
			return fmt.Errorf("it can't be held: %w", err)
		}
		defer unix.Close(rules)
		h.rules = rules
	}
	return h.start(cmd)
}

// hold is what a thread gives up before it starts a program.
type hold struct {
	rules   int // of Landlock, a descriptor; -1 where the kernel lacks it
	filter  bool
	network bool // whether the filter lets sockets be
}

// start starts a program on a thread that has given up its rights for good. The program
// inherits that; this process' other threads do not. The thread ends with its goroutine,
// since that never unlocks it.
func (h hold) start(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The first thread can't end. As long as it is held here, another is taken.
			defer runtime.UnlockOSThread()
			done <- h.start(cmd)
			return
		}
		if err := h.thread(); err != nil {
			done <- fmt.Errorf("it can't be held: %w", err)
			return
		}
		done <- cmd.Start()
	}()
	return <-done
}

// thread takes the rights from the thread that runs.
func (h hold) thread() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if h.rules >= 0 {
		if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(h.rules), 0, 0); errno != 0 {
			return fmt.Errorf("landlock: %w", errno)
		}
	}
	if h.filter {
		if err := sift(h.network); err != nil {
			return fmt.Errorf("seccomp: %w", err)
		}
	}
	return nil
}

// kept is the one capability that root's programs keep: to serve on port 80. With those
// about files (CHOWN, FOWNER, DAC_OVERRIDE, FSETID) they could make files of root's that
// outlive them, and with CAP_PERFMON look into other processes past Landlock.
const kept = 1 << unix.CAP_NET_BIND_SERVICE

// dropCapabilities takes the others from this thread; under no_new_privs, no
// program that it starts gets them back.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	for i, keep := range []uint32{kept, 0} {
		data[i].Effective &= keep
		data[i].Permitted &= keep
		data[i].Inheritable &= keep
	}
	return unix.Capset(&header, &data[0])
}
