package confine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// first runs a program as a child of the first process of a namespace. That process reaps
// orphans, and prints nothing.
const first = `exec 3>&2 2>/dev/null; "$@" 2>&3 3>&-; exit $?`

// prepare has bwrap build a root from what the policy allows. It binds what exists by
// descriptor, so a symlink that replaces it meanwhile changes nothing.
func (bubblewrap) prepare(p *Policy, dir string) (*ready, error) {
	path, err := bwrap()
	if err != nil {
		return nil, err
	}
	r := &root{ready: ready{args: append([]string{path}, unshared(p.Network)...), give: giveToBubblewrap}, there: []string{"/proc"}}
	r.bind("--ro-bind-fd", append(Readable(), p.Read...), false)
	// After what may be read, which it hides in part.
	r.hide(p.Private)
	r.kernel()
	r.bind("--bind-fd", slices.Clone(p.Write), false)
	r.bind("--bind-fd", slices.Clone(p.Own), true)
	if p.Dir != nil {
		r.mount("--bind-fd", p.Dir.Name(), p.Dir)
	}
	r.enter(dir)
	r.sift(p.Network)
	// Last: bwrap can create no mount point in what is read-only.
	for _, path := range append(r.hidden, "/proc", "/") {
		r.add("--remount-ro", path)
	}
	r.add("--", shellPath, "-c", first, "sh")
	if r.err != nil {
		r.close()
		return nil, r.err
	}
	return &r.ready, nil
}

// giveToBubblewrap drops the thread's rights that bwrap does not need. As root, bwrap
// needs root's capabilities; it drops them before it starts the program.
func giveToBubblewrap() error {
	if err := giveFirst(); err != nil || IsRoot() {
		return err
	}
	return dropCapabilities()
}

// root collects bwrap's arguments; err is the first error.
type root struct {
	ready
	there  []string // what is bound so far
	hidden []string // directories that are hidden by an empty one
	err    error
}

func (r *root) add(args ...string) { r.args = append(r.args, args...) }

// bind binds paths. It skips a path that does not exist, unless it must.
func (r *root) bind(how string, paths []string, must bool) {
	// Sorted: a directory comes before what is in it, so has finds it.
	slices.Sort(paths)
	for _, path := range paths {
		f, err := openPath(path, must)
		if f == nil {
			r.err = cmp.Or(r.err, err)
			continue
		}
		r.own = append(r.own, f)
		r.mount(how, path, f)
	}
}

// mount binds a file at its path without symlinks, and at the path as it was named.
func (r *root) mount(how, path string, f *os.File) {
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		r.err = cmp.Or(r.err, err)
		return
	}
	// A writable path is bound even inside a bound one, which may be read-only.
	if how == "--bind-fd" || !r.has(real) {
		r.add(how, r.inherit(f), real)
		r.there = append(r.there, real)
	}
	if !r.has(path) {
		r.add(how, r.inherit(f), path)
		r.there = append(r.there, path)
	}
}

// has reports whether a path is bound, or lies in a bound one.
func (r *root) has(path string) bool {
	return slices.ContainsFunc(r.there, func(dir string) bool { return within(dir, path) })
}

// hide covers paths with an empty file or directory if they would be visible.
func (r *root) hide(paths []string) {
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || !r.has(real) {
			continue
		}
		if info, err := os.Stat(real); err == nil && !info.IsDir() {
			r.add("--ro-bind", os.DevNull, real)
			continue
		}
		r.add("--tmpfs", real)
		r.hidden = append(r.hidden, real)
	}
}

// kernel adds /proc and the devices.
func (r *root) kernel() {
	r.add("--proc", "/proc")
	for _, device := range devices {
		r.add("--dev-bind-try", device, device)
	}
	if r.has("/dev") {
		return
	}
	r.add("--symlink", "/proc/self/fd", "/dev/fd")
	for i, name := range []string{"/dev/stdin", "/dev/stdout", "/dev/stderr"} {
		r.add("--symlink", "/proc/self/fd/"+strconv.Itoa(i), name)
	}
}

// enter makes the program start in a directory, which is empty unless it is bound.
func (r *root) enter(dir string) {
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		r.err = cmp.Or(r.err, err)
		return
	}
	if !r.has(real) {
		r.add("--dir", real)
	}
	r.add("--chdir", real)
}

// sift has bwrap install the filter.
func (r *root) sift(network bool) {
	from, to, err := os.Pipe()
	if err != nil {
		r.err = cmp.Or(r.err, err)
		return
	}
	defer to.Close()
	r.own = append(r.own, from)
	r.add("--seccomp", r.inherit(from))
	// The filter is smaller than a pipe's buffer, so this does not block.
	r.err = cmp.Or(r.err, binary.Write(to, binary.NativeEndian, filter(network)))
}
