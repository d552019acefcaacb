package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"path/filepath"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// Bounds of what is watched. Beyond maxWatched files and directories of one path, nothing is looked at.
const (
	maxWatched = 10_000
	maxChanged = 20 // files that are named
)

// watchName is what does the looking in errors.
const watchName = "watch"

// CheckWatch implements [tool.Workspaces]. A watched path is one that the file tools may read.
func (w *Workspace) CheckWatch(paths []string) error {
	for _, path := range paths {
		if _, err := w.place(watchName, path); err != nil {
			return agent.Errorf(agent.CodeInvalidInput, "%w", err).WithPath("daemon.watch")
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
		if place, err := w.place(watchName, path); err == nil { // otherwise it is not there, or leads outside now
			l.visit(ctx, place)
		}
		if ctx.Err() != nil {
			return agent.FilesSeen{}, ctx.Err() // a part of the files would look like a change
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
	for _, path := range changed {
		if len(seen.Changed) == maxChanged {
			seen.More++
		} else if !slices.Contains(seen.Changed, path) {
			seen.Changed = append(seen.Changed, path)
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
}

type watchedFile struct {
	place   string
	changed int64
}

// visit looks at a file, or at all files below a directory.
func (l *look) visit(ctx context.Context, place string) {
	if l.visited++; l.visited > maxWatched || ctx.Err() != nil {
		return
	}
	info, err := l.w.root.Lstat(place)
	switch {
	case err != nil:
	case info.Mode().IsRegular():
		at := info.ModTime().UnixNano()
		fmt.Fprintf(l.sum, "%q %d %d;", place, info.Size(), at)
		l.newest = max(l.newest, at)
		l.files = append(l.files, watchedFile{slashed(place), at})
	case info.IsDir():
		names, _, _ := l.w.names(place) // one that can't be read has no files
		for _, n := range names {
			if inner := filepath.Join(place, n); !slices.Contains(skipped, n) && !l.w.protected(inner) {
				l.visit(ctx, inner)
			}
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
