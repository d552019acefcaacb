package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// HostKernel is what the kernel of this machine can hold programs with.
func HostKernel() Kernel { return Kernel{Landlock: landlockABI(), Seccomp: hasSeccomp()} }

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
	rightsDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// rightsNever are handled, hence refused, and given to nothing.
	rightsNever = unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR
	// rightsFile are those that a rule for a file, and not a directory, may have.
	rightsFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// devices may be written. No terminal is among them: who writes to the person's can forge
// what they are shown.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

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

// ruleset makes Landlock's rules of a policy: a descriptor.
func (p *Policy) ruleset() (*os.File, error) {
	attr := rulesetAttr{fs: handled(p.Kernel.Landlock)}
	if p.Kernel.Signals() {
		attr.scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, fmt.Errorf("landlock: %w", errno)
	}
	f := os.NewFile(fd, "landlock")
	rules := ruleset{fd: int(fd), handled: attr.fs}
	if p.Dir != nil {
		rules.allow(p.Dir, rightsRead|rightsEdit)
	}
	for _, path := range p.Own {
		rules.path(path, rightsRead|rightsEdit, true)
	}
	for _, path := range p.Write {
		rules.path(path, rightsRead|rightsEdit, false)
	}
	private := LookUp(p.Private)
	for _, path := range Readable() {
		rules.without(private, path)
	}
	for _, path := range p.Read {
		rules.path(path, rightsRead, false)
	}
	for _, path := range devices {
		rules.path(path, rightsDevice, false)
	}
	if rules.err != nil {
		f.Close()
		return nil, rules.err
	}
	return f, nil
}

func (landlock) prepare(p *Policy, _ string) (*ready, error) {
	r := &ready{}
	rules := -1
	if p.Kernel.Landlock > 0 {
		f, err := p.ruleset()
		if err != nil {
			return nil, err
		}
		r.own, rules = append(r.own, f), int(f.Fd())
	}
	r.give = func() error { return giveAll(rules, p.Kernel.Seccomp, p.Network) }
	return r, nil
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
	f, err := openPath(path, must)
	if f == nil {
		r.err = err
		return
	}
	defer f.Close()
	r.allow(f, rights)
}

// openPath opens what is at a path for nothing but to name it. One that does not exist is
// nil, unless it must.
func openPath(path string, must bool) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	switch {
	case err == nil:
		return os.NewFile(uintptr(fd), path), nil
	case !must && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOTDIR)):
		return nil, nil
	}
	return nil, fmt.Errorf("%s: %w", path, err)
}

// without allows reading beneath a path, except for what is private there: of a directory with
// something private in it, the other entries are allowed one by one.
func (r *ruleset) without(private Places, path string) {
	if private.Containing(path) != "" {
		return
	}
	if private.In(path) == "" {
		r.path(path, rightsRead, false)
		return
	}
	entries, _ := os.ReadDir(path) // of one that can't be read, nothing is allowed
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink == 0 { // where it leads is allowed there, or not at all
			r.without(private, filepath.Join(path, entry.Name()))
		}
	}
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
