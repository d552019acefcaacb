package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"
)

// mod is a module of the tree.
type mod struct {
	path string // the import path
	dir  string // its folder below the top, "" for the root
	file *modfile.File
}

// tag returns the module's tag in git.
func (m *mod) tag(version string) string {
	if m.dir == "" {
		return version
	}
	return m.dir + "/" + version
}

// modules reads the modules of a tree's workspace, each after those that it requires.
func modules(top string) ([]*mod, error) {
	data, err := os.ReadFile(filepath.Join(top, "go.work"))
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return nil, err
	}
	var left []*mod
	for _, use := range work.Use {
		path := filepath.Join(top, use.Path, "go.mod")
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := modfile.Parse(path, data, nil)
		if err != nil {
			return nil, err
		}
		dir := filepath.ToSlash(filepath.Clean(use.Path))
		if dir == "." {
			dir = ""
		}
		left = append(left, &mod{file.Module.Mod.Path, dir, file})
	}
	return ordered(left)
}

// ordered sorts modules so that each is after those that it requires.
func ordered(left []*mod) (out []*mod, err error) {
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(m *mod) bool { return len(m.requires(left)) == 0 })
		if i < 0 {
			return nil, fmt.Errorf("the modules from %s on require each other in a circle", left[0].path)
		}
		out = append(out, left[i])
		left = slices.Delete(left, i, i+1)
	}
	return out, nil
}

// requires returns the paths of those modules that the module requires.
func (m *mod) requires(all []*mod) (paths []string) {
	for _, r := range m.file.Require {
		if slices.ContainsFunc(all, func(o *mod) bool { return o.path == r.Mod.Path }) {
			paths = append(paths, r.Mod.Path)
		}
	}
	return paths
}

// pin makes the module require the tree's others by version instead of path. A module also
// replaces what those that it requires require, so each module of the tree may be replaced.
func (m *mod) pin(all []*mod, version string) ([]byte, error) {
	for _, path := range m.requires(all) {
		if err := m.file.AddRequire(path, version); err != nil {
			return nil, err
		}
	}
	for _, o := range all {
		if err := m.file.DropReplace(o.path, ""); err != nil {
			return nil, err
		}
	}
	m.file.Cleanup()
	if len(m.file.Replace) > 0 {
		return nil, fmt.Errorf("%s replaces %s, and nobody can install what replaces anything", m.path, m.file.Replace[0].Old.Path)
	}
	return m.file.Format()
}
