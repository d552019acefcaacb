package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/fermata-agents/fermata/internal/confine"
	"github.com/fermata-agents/fermata/tool"
)

const (
	maxPath  = 4096
	maxLinks = 40
)

var errOutside = errors.New("is outside the workspace")

// refuse returns an error that says in one line that a tool did nothing, and why.
func refuse(name, format string, args ...any) error {
	return tool.Refuse("%s refused: %s", name, fmt.Sprintf(format, args...))
}

// place resolves a path that the model wrote to a relative path without symlinks. The
// path need not exist. place refuses what is outside or protected.
func (w *Workspace) place(name, path string) (string, error) {
	inside, err := w.inside(path)
	if err != nil {
		return "", refuse(name, "%s %v", shown(path), err)
	}
	real, err := w.follow(inside)
	if err != nil {
		return "", explain(name, path, err)
	}
	// Both names count: a plain symlink may lead to a secret, and a secret name to a
	// plain file.
	if w.protected(inside) || w.protected(real) {
		return "", refuse(name, "%s is protected, since such files usually hold secrets", shown(path))
	}
	return real, nil
}

// inside makes a path relative to the workspace. It looks only at the text of the path.
func (w *Workspace) inside(path string) (string, error) {
	switch {
	case len(path) > maxPath:
		return "", fmt.Errorf("is no path: it is longer than %d bytes", maxPath)
	case strings.ContainsRune(path, 0):
		return "", errors.New("is no path: it has a NUL in it")
	}
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) {
		if path = filepath.Clean(path); filepath.IsLocal(path) {
			return path, nil
		}
		return "", errOutside
	}
	// A model may have seen the workspace under either name.
	for _, root := range []string{w.given, w.real} {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return rel, nil
		}
	}
	return "", errOutside
}

// follow replaces the symlinks of a relative path, as far as the path exists. It decides
// nothing about safety: its result is opened through the root.
func (w *Workspace) follow(path string) (string, error) {
	done, rest := ".", strings.Split(path, string(filepath.Separator))
	for links := 0; len(rest) > 0; {
		next := filepath.Join(done, rest[0])
		rest = rest[1:]
		info, err := w.root.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			return filepath.Join(append([]string{next}, rest...)...), nil
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", syscall.ELOOP
		}
		target, err := w.root.Readlink(next)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(w.real, done, target)
		}
		if target, err = w.inside(target); err != nil {
			return "", err
		}
		done, rest = ".", append(strings.Split(target, string(filepath.Separator)), rest...)
	}
	return done, nil
}

// errFixed is the error for [Options.Private], and for writing to [Options.Protect].
var errFixed = errors.New("belongs to the worker, and no tool may touch it")

// fixed returns the places that may not be read, or not be written.
func (w *Workspace) fixed(write bool) confine.Places {
	// Looked up each time: a path of the list may have been created or moved.
	list := confine.LookUp(w.opts.Private)
	if write {
		list = append(list, confine.LookUp(w.opts.Protect)...)
	}
	return list
}

// touches refuses a name in a directory that is fixed. self is the file with that name,
// nil if there is none.
func touches(fixed confine.Places, dir *os.Root, name string, self fs.FileInfo) error {
	if len(fixed) == 0 {
		return nil
	}
	info, err := dir.Stat(".")
	if err == nil && fixed.Has(info, name, self) != "" {
		err = errFixed
	}
	return err
}

// errSwapped is the error of a file or directory that is no longer the one that was
// checked.
var errSwapped = errors.New("was exchanged while it was being opened")

// walk opens the directory at a place, name by name, and creates missing ones if told to.
// A name that became a symlink since place was called is an error. So the names that were
// checked are the names that are opened. walk does not enter fixed directories.
func (w *Workspace) walk(place string, make bool) (*os.Root, error) {
	dir, err := w.root.OpenRoot(".")
	if err != nil || place == "." {
		return dir, err
	}
	fixed := w.fixed(make)
	for name := range strings.SplitSeq(place, string(filepath.Separator)) {
		inner, err := enter(dir, name, make, fixed)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir = inner
	}
	return dir, nil
}

func enter(dir *os.Root, name string, make bool, fixed confine.Places) (*os.Root, error) {
	if make {
		if err := touches(fixed, dir, name, nil); err != nil {
			return nil, err
		}
		if err := dir.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	want, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := touches(fixed, dir, name, want); err != nil {
		return nil, err
	}
	if !want.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	inner, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	// Between Lstat and OpenRoot somebody may have put another directory here.
	info, err := inner.Stat(".")
	if err == nil && !os.SameFile(info, want) {
		err = errSwapped
	}
	if err != nil {
		inner.Close()
		return nil, err
	}
	return inner, nil
}

// open opens a regular file at a place for reading. It does not wait for the other end of
// a pipe, and what it opens is what was checked.
func (w *Workspace) open(name, path, place string) (*os.File, fs.FileInfo, error) {
	dir, err := w.walk(filepath.Dir(place), false)
	if err != nil {
		return nil, nil, explain(name, path, err)
	}
	defer dir.Close()
	base := filepath.Base(place)
	want, err := dir.Lstat(base)
	if err != nil {
		return nil, nil, explain(name, path, err)
	}
	if err := touches(w.fixed(false), dir, base, want); err != nil {
		return nil, nil, explain(name, path, err)
	}
	// Checked before the open: opening a device can have effects.
	if err := regular(name, path, want); err != nil {
		return nil, nil, err
	}
	f, err := dir.OpenFile(base, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, explain(name, path, err)
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(info, want) {
		err = errSwapped
	}
	if err != nil {
		f.Close()
		return nil, nil, explain(name, path, err)
	}
	return f, info, nil
}

func regular(name, path string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return refuse(name, "%s is a directory; see %s", shown(path), ListTool)
	case !info.Mode().IsRegular():
		return refuse(name, "%s is no regular file (%s)", shown(path), info.Mode().Type())
	}
	return nil
}

// explain turns an error of the file system into one line for the model. The line has the
// model's own path, and no other path of this machine.
func explain(name, path string, err error) error {
	// Only the innermost error: the others contain paths of this machine.
	var bare error = err
	for e := (*fs.PathError)(nil); errors.As(bare, &e); {
		bare = e.Err
	}
	for e := (*os.LinkError)(nil); errors.As(bare, &e); {
		bare = e.Err
	}
	switch {
	case errors.Is(bare, fs.ErrNotExist):
		return refuse(name, "%s does not exist", shown(path))
	case errors.Is(bare, fs.ErrPermission):
		return refuse(name, "%s may not be touched by this worker (%v)", shown(path), bare)
	case errors.Is(bare, syscall.ENOTDIR):
		return refuse(name, "%s leads through a file", shown(path))
	case errors.Is(bare, syscall.ELOOP):
		return refuse(name, "%s leads through too many symlinks", shown(path))
	case errors.Is(bare, syscall.ENAMETOOLONG):
		return refuse(name, "%s has a name that is too long", shown(path))
	// os.Root does not export this error.
	case errors.Is(bare, errOutside) || bare.Error() == "path escapes from parent":
		return refuse(name, "%s %v", shown(path), errOutside)
	}
	if errors.Is(bare, errFixed) {
		return refuse(name, "%s %v", shown(path), errFixed)
	}
	if errors.Is(bare, errSwapped) {
		return fmt.Errorf("%s: %s %w", name, shown(path), bare)
	}
	return fmt.Errorf("%s: %s: %w", name, shown(path), bare)
}

// shown returns a path for a message: bounded, and quoted if it has unusual characters.
func shown(path string) string {
	const most = 200
	if len(path) > most {
		path = path[:most] + "…"
	}
	if q := strconv.Quote(path); path == "" || q != `"`+path+`"` {
		return q
	}
	return path
}

// slashed returns a place as models write and read it.
func slashed(place string) string { return filepath.ToSlash(place) }
