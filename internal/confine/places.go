package confine

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Places are paths that are known again by what they are, whatever name leads there. They
// are those of one moment: look again when something may have been moved.
type Places []place

// place is where a path lies, or a symlink on its way: who exchanges that has another file
// at the path.
type place struct {
	path string      // as it was named
	at   string      // the directory, without symlinks
	dir  fs.FileInfo // which it is
	name string      // in the directory
	self fs.FileInfo // nil if nothing is there
}

// LookUp finds out where paths lie. They are absolute; those that are not there yet are found
// where they will be.
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

// names are those on a path, except for ".".
func names(path string) []string {
	list := strings.FieldsFunc(path[len(filepath.VolumeName(path)):], func(r rune) bool { return r == '/' || r == filepath.Separator })
	return slices.DeleteFunc(list, func(name string) bool { return name == "." })
}

// Has tells which path a name of a directory is; empty if none. self is what has the name,
// nil for nothing.
func (p Places) Has(dir fs.FileInfo, name string, self fs.FileInfo) string {
	for _, each := range p {
		if os.SameFile(each.dir, dir) && strings.EqualFold(each.name, name) || self != nil && each.self != nil && os.SameFile(each.self, self) {
			return each.path
		}
	}
	return ""
}

// In tells which path lies in a directory, or is it, also where it is mounted twice; empty if
// none.
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

// Containing tells in which path a directory lies, also where it is mounted twice; empty if in
// none.
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

// Is tells which path something is; empty if none.
func (p Places) Is(info fs.FileInfo) string {
	for _, each := range p {
		if each.self != nil && os.SameFile(each.self, info) {
			return each.path
		}
	}
	return ""
}
