package lock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

const (
	version  = 1
	maxBytes = 16 << 20
	// patience is how long a change waits for that of another process. A file that is
	// older than stale was left by a process that died.
	patience = 5 * time.Second
	stale    = time.Minute
)

func (f *File) read() (pins, error) {
	empty := pins{V: version, Sources: map[string]source{}}
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, f.bad(err)
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return empty, f.bad(err)
	}
	if len(raw) > maxBytes {
		return empty, f.bad(fmt.Errorf("it has more than %d bytes", maxBytes))
	}
	var p pins
	if err := json.Unmarshal(raw, &p); err != nil {
		return empty, f.bad(fmt.Errorf("%w; repair it, or undo the change", err))
	}
	if p.V != version || p.Sources == nil {
		return empty, f.bad(fmt.Errorf("it is of version %d, and this build reads %d", p.V, version))
	}
	return p, nil
}

func (f *File) bad(err error) error {
	return agent.Errorf(agent.CodeInvalidInput, "the lock file %s can't be read: %w", f.path, err).WithPath("lock")
}

func (f *File) unwritten(err error) error {
	return agent.Errorf(agent.CodeInvalidInput, "what a source lists is not pinned yet, and the lock file %s can't be written: %w. Run \"fermata lock --accept\" where it can be, and deploy it with the agents file", f.path, err).WithPath("lock")
}

// CheckWrite returns the error that [File.Filter] would return for a new source if the
// file can't be written. It changes nothing.
func (f *File) CheckWrite() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, err := f.begin()
	if err != nil {
		return f.unwritten(err)
	}
	return errors.Join(next.Close(), os.Remove(next.Name()))
}

// change rewrites the file. It first writes a second file beside it. Only one process can
// create that file, so it is also the lock.
func (f *File) change(do func(*pins)) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, err := f.begin()
	if err != nil {
		return f.unwritten(err)
	}
	defer func() {
		err = errors.Join(err, next.Close())
		if err == nil {
			err = os.Rename(next.Name(), f.path)
		}
		if err != nil {
			err = errors.Join(err, os.Remove(next.Name()))
		}
	}()
	// Read only now: before the lock another process may still have changed the file.
	p, err := f.read()
	if err != nil {
		return err
	}
	do(&p)
	raw, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if _, err := next.Write(append(raw, '\n')); err != nil {
		return err
	}
	// Before the rename, so that a crash can't leave an empty file under the final name.
	return next.Sync()
}

// begin creates the second file once no other process has it.
func (f *File) begin() (*os.File, error) {
	path, until := f.path+".new", time.Now().Add(patience)
	for {
		// O_EXCL makes the file a lock: only one process can create it.
		next, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if !errors.Is(err, fs.ErrExist) {
			return next, err
		}
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > stale {
			_ = os.Remove(path) // the process that made it is gone
			continue
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("%s exists: another process writes the file, or ended while writing it", path)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
