package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// landlockABI is the version of Landlock that the kernel has; zero for none.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// Rights, in the words of Landlock.
const (
	rightsRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsEdit = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightsDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// rightsNever are handled, hence refused, and given to nothing.
	rightsNever = unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR
	// rightsFile are those that a rule for a file, and not a directory, may have.
	rightsFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// systemDirs are what programs need to run. What there is secret in them is
// protected by the modes of its files. /run is not among them: secrets of
// containers are mounted there; nor is /var, where services keep their data.
var systemDirs = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/sys",
	"/nix", "/gnu", "/snap", "/run/current-system", "/home/linuxbrew",
}

// devices may be written, and asked for what terminals are asked for.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"}

// What the kernel is given. A kernel that knows less of it wants the rest to be
// zero, one that knows more fills up with zeros. Package unix has these too, with
// names and sizes that change between its versions.
type (
	rulesetAttr     struct{ fs, net, scoped uint64 }
	pathBeneathAttr struct {
		allowed uint64
		parent  int32
	}
)

// handled are the rights that a version of Landlock knows.
func handled(abi int) uint64 {
	rights := uint64(rightsRead | rightsEdit | rightsDevice | rightsNever)
	if abi < 2 {
		rights &^= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi < filesABI {
		rights &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi < 5 {
		rights &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return rights
}

// hold is what a thread gives up before it starts a command.
type hold struct {
	rules   int // of Landlock, a descriptor; -1 where the kernel lacks it
	network bool
}

// launch starts a command, held by the kernel as far as it can.
func (w *Workspace) launch(cmd *exec.Cmd, c command) error {
	h := hold{rules: -1, network: w.unlinked()}
	if w.abi > 0 {
		rules, err := w.ruleset(c)
		if err != nil {
			return fmt.Errorf("it can't be held in the workspace: %w", err)
		}
		defer unix.Close(rules)
		h.rules = rules
	}
	return startHeld(cmd, h)
}

// startHeld starts a command on a thread that has given up its rights for good.
// The command inherits that; this process' other threads do not. The thread
// ends with its goroutine, since that never unlocks it.
func startHeld(cmd *exec.Cmd, h hold) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The first thread can't end. As long as it is held here, another is taken.
			defer runtime.UnlockOSThread()
			done <- startHeld(cmd, h)
			return
		}
		if err := h.thread(); err != nil {
			done <- fmt.Errorf("it can't be held in the workspace: %w", err)
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
	if h.network {
		if err := unlink(); err != nil {
			return fmt.Errorf("seccomp: %w", err)
		}
	}
	return nil
}

// kept are the capabilities that root's commands keep: those that unpacking an
// archive or serving on port 80 needs. Without this, root may look into other
// processes past Landlock (CAP_PERFMON).
const kept = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID |
	1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_NET_BIND_SERVICE

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

// ruleset makes the rules for one command.
func (w *Workspace) ruleset(c command) (int, error) {
	attr := rulesetAttr{fs: handled(w.abi)}
	if w.abi >= signalsABI {
		attr.scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return 0, fmt.Errorf("landlock: %w", errno)
	}
	rules := ruleset{fd: int(fd), handled: attr.fs}
	root, err := w.root.Open(".")
	if err != nil {
		unix.Close(rules.fd)
		return 0, err
	}
	defer root.Close()
	rules.allow(root, rightsRead|rightsEdit)
	rules.path(c.home, rightsRead|rightsEdit, true)
	rules.path(c.temp, rightsRead|rightsEdit, true)
	for _, path := range w.opts.Write {
		rules.path(path, rightsRead|rightsEdit, false)
	}
	for _, path := range append(w.readable(), systemDirs...) {
		rules.path(path, rightsRead, false)
	}
	for _, path := range devices {
		rules.path(path, rightsDevice, false)
	}
	if rules.err != nil {
		unix.Close(rules.fd)
	}
	return rules.fd, rules.err
}

// ruleset collects rules; err is the first thing that went wrong.
type ruleset struct {
	fd      int
	handled uint64
	err     error
}

// path allows something beneath a path. One that does not exist is left out,
// unless it must.
func (r *ruleset) path(path string, rights uint64, must bool) {
	if r.err != nil {
		return
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		if must || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.ENOTDIR) {
			r.err = fmt.Errorf("%s: %w", path, err)
		}
		return
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	r.allow(f, rights)
}

func (r *ruleset) allow(f *os.File, rights uint64) {
	if r.err != nil {
		return
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		r.err = fmt.Errorf("%s: %w", f.Name(), err)
		return
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsFile
	}
	rule := pathBeneathAttr{allowed: rights & r.handled, parent: int32(f.Fd())}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		r.err = fmt.Errorf("landlock: %s: %w", f.Name(), errno)
	}
}
