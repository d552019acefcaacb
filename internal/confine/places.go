package confine

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Places are paths that are recognised by what they are, whatever name leads there. They
// are true for one moment: call LookUp again if something may have been moved.
type Places []place

// place is where a path lies, or a symlink on its way: whoever replaces the symlink puts
// another file at the path.
type place struct {
	path string      // as the caller named it
	at   string      // its directory, without symlinks
	dir  fs.FileInfo // that directory's identity
	name string      // its name in the directory
	self fs.FileInfo // nil if nothing is there
}

// LookUp finds where paths lie. They are absolute. A path that does not exist yet is
// found where it will be.
func LookUp(paths []string) (list Places) {
	for _, path := range paths {
		list = append(list, look(path)...)
	}
	return list
}

const maxLinks = 40

func look(path string) (list Places) {
	done, rest := top(path), names(path)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		next := filepath.Join(done, name) // done has no symlinks, so ".." is its parent
		dir, err := os.Stat(done)
		if err != nil {
			return list
		}
		info, err := os.Lstat(next)
		link := err == nil && info.Mode()&fs.ModeSymlink != 0
		if err != nil || link || len(rest) == 0 {
			list = append(list, place{path, done, dir, name, info})
		}
		if err != nil {
			return list
		}
		if !link {
			done = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return list
		}
		if filepath.IsAbs(target) {
			done = top(target)
		}
		rest = append(names(target), rest...)
	}
	return list
}

func top(path string) string { return filepath.VolumeName(path) + string(filepath.Separator) }

// names returns the names on a path, except for ".".
func names(path string) []string {
	list := strings.FieldsFunc(path[len(filepath.VolumeName(path)):], func(r rune) bool { return r == '/' || r == filepath.Separator })
	return slices.DeleteFunc(list, func(name string) bool { return name == "." })
}

// Has returns which path a name in a directory is; empty if none. self is the file with
// that name, nil if there is none.
func (p Places) Has(dir fs.FileInfo, name string, self fs.FileInfo) string {
	for _, each := range p {
		// Case is ignored: on some file systems both names are one file.
		if os.SameFile(each.dir, dir) && strings.EqualFold(each.name, name) || self != nil && each.self != nil && os.SameFile(each.self, self) {
			return each.path
		}
	}
	return ""
}

// In returns which path lies in a directory or is it, even if it is mounted twice; empty
// if none.
func (p Places) In(dir string) string {
	info, err := os.Stat(dir)
	if err != nil {
		return ""
	}
	for _, each := range p {
		if each.self != nil && os.SameFile(each.self, info) || lies(each.at, info) {
			return each.path
		}
	}
	return p.mountedIn(dir)
}

// Containing returns which path contains a directory, even if it is mounted twice; empty
// if none.
func (p Places) Containing(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	for _, each := range p {
		if each.self != nil && lies(real, each.self) {
			return each.path
		}
	}
	return p.mountedAround(dir)
}

// lies reports whether a path without symlinks is a directory, or lies in it.
func lies(path string, dir fs.FileInfo) bool {
	for {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, dir) {
			return true
		}
		up := filepath.Dir(path)
		if up == path {
			return false
		}
		path = up
	}
}

// Is returns which path a file is; empty if none.
func (p Places) Is(info fs.FileInfo) string {
	for _, each := range p {
		if each.self != nil && os.SameFile(each.self, info) {
			return each.path
		}
	}
	return ""
}
