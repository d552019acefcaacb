package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// Bounds of what is watched. What is more, or deeper, is not looked at.
const (
	maxWatched = 10_000  // files and directories below one path
	maxDeep    = 32      // directories in one another below one path
	maxChanged = 20      // files that are named
	maxNamed   = 2 << 10 // bytes of their names
)

// watchName is what does the looking in errors.
const watchName = "watch"

// CheckWatch implements [tool.Workspaces]. A watched path is one that the file tools may read.
func (w *Workspace) CheckWatch(paths []string) error {
	for i, path := range paths {
		if _, err := w.place(watchName, path); err != nil {
			return agent.Errorf(agent.CodeInvalidInput, "daemon.watch[%d]: %w", i, err).WithPath(fmt.Sprintf("daemon.watch[%d]", i))
		}
	}
	return nil
}

// Watch implements [tool.Workspaces]. Like the file tools it follows no symlink out of the workspace, and
// sees no protected file. It follows no symlink below a path, and does not enter .git and node_modules.
func (w *Workspace) Watch(ctx context.Context, paths []string, marks []agent.FileMark) (agent.FilesSeen, error) {
	seen := agent.FilesSeen{Marks: make([]agent.FileMark, len(paths))}
	for i, path := range paths {
		l := look{w: w, sum: sha256.New()}
		if place, err := w.place(watchName, path); err == nil { // otherwise it leads outside now
			l.visit(ctx, place, 0)
		}
		if err := cmp.Or(ctx.Err(), l.failed); err != nil {
			return agent.FilesSeen{}, err // a part of the files would look like a change
		}
		seen.Marks[i] = agent.FileMark{Digest: hex.EncodeToString(l.sum.Sum(nil)[:8]), Newest: l.newest}
		if len(marks) == len(paths) && marks[i].Digest != seen.Marks[i].Digest {
			name(&seen, l.newer(path, marks[i].Newest))
		}
	}
	return seen, nil
}

// name adds the names of changed files, as many as there is room for.
func name(seen *agent.FilesSeen, changed []string) {
	room := maxNamed
	for _, path := range seen.Changed {
		room -= len(path)
	}
	for _, path := range changed {
		switch {
		case slices.Contains(seen.Changed, path):
		case len(seen.Changed) == maxChanged, len(path) > room:
			seen.More++
		default:
			seen.Changed, room = append(seen.Changed, path), room-len(path)
		}
	}
}

// look is one look at the files below a path.
type look struct {
	w       *Workspace
	sum     hash.Hash
	visited int
	newest  int64
	files   []watchedFile
	failed  error // why a file could not be looked at, though it may be there
}

type watchedFile struct {
	place   string
	changed int64
}

// visit looks at a file, or at all files below a directory.
func (l *look) visit(ctx context.Context, place string, deep int) {
	if l.visited++; l.visited > maxWatched || deep > maxDeep || ctx.Err() != nil || l.failed != nil {
		return
	}
	info, err := l.w.root.Lstat(place)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
	case err != nil:
		l.failed = err
	case info.Mode().IsRegular():
		at := info.ModTime().UnixNano()
		fmt.Fprintf(l.sum, "%q %d %d;", place, info.Size(), at)
		l.newest = max(l.newest, at)
		l.files = append(l.files, watchedFile{slashed(place), at})
	case info.IsDir():
		l.enter(ctx, place, deep+1)
	}
}

// enter looks at all files below a directory.
func (l *look) enter(ctx context.Context, place string, deep int) {
	names, _, err := l.w.names(place)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		l.failed = err
	}
	for _, n := range names {
		if inner := filepath.Join(place, n); !slices.Contains(skipped, n) && !l.w.protected(inner) {
			l.visit(ctx, inner, deep)
		}
	}
}

// newer returns the files that were changed after a time, or the watched path if there is none: a file is
// gone, or an older one has come.
func (l *look) newer(path string, than int64) (names []string) {
	for _, f := range l.files {
		if f.changed > than {
			names = append(names, f.place)
		}
	}
	if names == nil {
		return []string{path}
	}
	return names
}
