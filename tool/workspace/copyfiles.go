package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fermata-agents/fermata/internal/confine"
	"github.com/fermata-agents/fermata/internal/worktree"
)

// files are the workspace's files for a copy, opened through its root.
type files struct {
	w     *Workspace
	fixed confine.Places
}

func (w *Workspace) files() files { return files{w, w.fixed(false)} }

// Skip implements [worktree.Files]. Secrets are left out: somebody may push a branch.
func (f files) Skip(path string) bool {
	return worktree.OfGit(path) || f.w.protected(filepath.FromSlash(path))
}

// List implements [worktree.Files].
func (f files) List(dir string, most int) (list []worktree.Name, err error) {
	place := "."
	if dir != "" {
		place = filepath.FromSlash(dir)
	}
	root, err := f.w.walk(place, false)
	if err != nil {
		return nil, gone(err)
	}
	defer root.Close()
	opened, err := root.Open(".")
	if err != nil {
		return nil, gone(err)
	}
	defer opened.Close()
	entries, err := opened.ReadDir(most)
	if err != nil && err != io.EOF {
		return nil, err
	}
	for _, e := range entries {
		list = append(list, worktree.Name{Name: e.Name(), Dir: e.IsDir()})
	}
	return list, nil
}

// Open implements [worktree.Files].
func (f files) Open(path string) (*worktree.File, error) {
	place := filepath.FromSlash(path)
	if !filepath.IsLocal(place) || worktree.OfGit(path) {
		return nil, nil
	}
	dir, err := f.w.walk(filepath.Dir(place), false)
	if err != nil {
		return nil, gone(err)
	}
	defer dir.Close()
	name := filepath.Base(place)
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, gone(err)
	}
	if touches(f.fixed, dir, name, info) != nil {
		return nil, nil
	}
	return openFile(dir, name, info)
}

// gone returns nil for the error of a file that is not there, or is behind a link.
func gone(err error) error {
	for _, none := range []error{fs.ErrNotExist, errSwapped, errFixed} {
		if errors.Is(err, none) {
			return nil
		}
	}
	if strings.Contains(err.Error(), "not a directory") {
		return nil
	}
	return err
}

func openFile(dir *os.Root, name string, info fs.FileInfo) (*worktree.File, error) {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := dir.Readlink(name)
		if err != nil {
			return nil, gone(err)
		}
		return &worktree.File{Mode: worktree.Symlink, Size: int64(len(target)), ReadCloser: io.NopCloser(strings.NewReader(target))}, nil
	case !info.Mode().IsRegular():
		return nil, nil
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, gone(err)
	}
	now, err := f.Stat()
	if err != nil || !os.SameFile(now, info) {
		f.Close()
		return nil, err
	}
	mode := worktree.Regular
	if now.Mode()&0o100 != 0 {
		mode = worktree.Executable
	}
	return &worktree.File{Mode: mode, Size: now.Size(), ReadCloser: f}, nil
}
