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

// HostKernel returns what the kernel of this machine can confine programs with.
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
	// rightsNever are handled, hence refused, and never granted.
	rightsNever = unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR
	// rightsFile are the rights that a rule for a file, as opposed to a directory, may
	// have.
	rightsFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// devices may be written. No terminal is among them: a program that writes to a person's
// terminal can forge what they see.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// The structs that the kernel gets. An older kernel wants unknown fields to be zero, and
// a newer one fills missing fields with zeros. Package unix has these structs, too, but
// their names and sizes change between its versions.
type (
	rulesetAttr     struct{ fs, net, scoped uint64 }
	pathBeneathAttr struct {
		allowed uint64
		parent  int32
	}
)

// handled returns the rights that a version of Landlock knows.
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

// ruleset creates the Landlock rules of a policy. The file is their descriptor.
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
	// Read paths are checked by exposed and refused; the system's directories are only
	// restricted, since every program needs them.
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

// ruleset collects rules; err is the first error.
type ruleset struct {
	fd      int
	handled uint64
	err     error
}

// path allows rights beneath a path. It skips a path that does not exist, unless it must.
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

// openPath opens a path only to refer to it. It returns nil for a path that does not
// exist, unless it must.
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

// without allows reading beneath a path, except what is private there. If a directory has
// something private in it, its other entries are allowed one by one.
func (r *ruleset) without(private Places, path string) {
	if private.Containing(path) != "" {
		return
	}
	if private.In(path) == "" {
		r.path(path, rightsRead, false)
		return
	}
	// If the directory can't be read, nothing in it is allowed.
	entries, _ := os.ReadDir(path)
	for _, entry := range entries {
		// A symlink's target is allowed by its own path, or not at all.
		if entry.Type()&fs.ModeSymlink == 0 {
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
	// The kernel refuses a rule for a file with rights that only directories can have.
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsFile
	}
	rule := pathBeneathAttr{allowed: rights & r.handled, parent: int32(f.Fd())}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		r.err = fmt.Errorf("landlock: %s: %w", f.Name(), errno)
	}
}
