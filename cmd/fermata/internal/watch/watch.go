package watch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Every is how often files are looked at.
const Every = time.Second

// Bounds of what is watched, and of a change's list.
const (
	maxFiles  = 10_000
	maxListed = 100
	maxLooks  = 10 // a file that never comes to rest is reported after so many
)

// Change is what has changed since the last one: the payload of an event.
type Change struct {
	// Changed are files that are new, or have another size or time. Removed are gone.
	Changed []string `json:"changed,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Left counts the files that are in no list, because it would be too long.
	Left int `json:"left,omitempty"`
	// ID is the same for everybody who sees the same files change in the same way.
	ID string `json:"-"`
}

// state is what a file looks like.
type state struct{ size, changed int64 }

// Files are the files below some paths, as they were when they were last looked at.
type Files struct {
	paths            []string
	reported, newest map[string]state
	looks            int // since something began to change
}

// New looks at the files below paths for the first time. The error is [agent.CodeNotFound] for a path that
// is not there, and [agent.CodeTooLarge] for too many files.
func New(paths ...string) (*Files, error) {
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			return nil, agent.Errorf(agent.CodeNotFound, "%s can't be watched: %w", path, err)
		}
	}
	f := &Files{paths: paths}
	now, err := f.read()
	f.reported, f.newest = now, now
	return f, err
}

// Look looks at the files again. It returns a change when they have come to rest: a file that is being
// written is no change yet. Nil means that there is none. The change comes again until [Files.Reported].
func (f *Files) Look() (*Change, error) {
	now, err := f.read()
	if err != nil {
		return nil, err
	}
	rests := maps.Equal(now, f.newest)
	f.newest = now
	if maps.Equal(now, f.reported) {
		f.looks = 0
		return nil, nil
	}
	if f.looks++; !rests && f.looks < maxLooks {
		return nil, nil
	}
	return f.change(), nil
}

// Reported notes that the last change has been reported.
func (f *Files) Reported() { f.reported, f.looks = f.newest, 0 }

// change compares the files with those that were reported.
func (f *Files) change() *Change {
	c, sum := &Change{}, sha256.New()
	list := func(into *[]string, path string) {
		fmt.Fprintf(sum, "%q %v;", path, f.newest[path])
		if len(c.Changed)+len(c.Removed) == maxListed {
			c.Left++
			return
		}
		*into = append(*into, path)
	}
	for _, path := range slices.Sorted(maps.Keys(f.newest)) {
		if was, had := f.reported[path]; !had || was != f.newest[path] {
			list(&c.Changed, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(f.reported)) {
		if _, has := f.newest[path]; !has {
			list(&c.Removed, path)
		}
	}
	c.ID = "watch-" + hex.EncodeToString(sum.Sum(nil))[:32]
	return c
}

// read returns the regular files below the paths. One that vanishes meanwhile is not there.
func (f *Files) read() (map[string]state, error) {
	all := map[string]state{}
	for _, root := range f.paths {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // what can't be read is not watched
			}
			info, err := d.Info()
			if err != nil || !info.Mode().IsRegular() {
				return nil //nolint:nilerr // it is gone
			}
			if all[path] = (state{info.Size(), info.ModTime().UnixNano()}); len(all) > maxFiles {
				return agent.Errorf(agent.CodeTooLarge, "%s has more than %d files; watch fewer", root, maxFiles)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
