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
	// patience is how long a change waits for that of another process, and stale is how old
	// the file of one is that was given up.
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
		return empty, f.bad(fmt.Errorf("%w; mend it, or take back what was changed in it", err))
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
	return agent.Errorf(agent.CodeInvalidInput, "the tools of a source are not pinned yet, and the lock file %s can't be written: %w. Run \"fermata lock --accept\" where it can be, and deploy it with the agents file", f.path, err).WithPath("lock")
}

// CheckWrite returns the error of [File.Filter] for a source that is not pinned yet, if the file
// can't be written. It changes nothing.
func (f *File) CheckWrite() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, err := f.begin()
	if err != nil {
		return f.unwritten(err)
	}
	return errors.Join(next.Close(), os.Remove(next.Name()))
}

// change writes the file anew. A second file beside it, which only one process can make, is
// what is written first, and keeps others out.
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
	return next.Sync()
}

// begin makes the second file, when no other process has one.
func (f *File) begin() (*os.File, error) {
	path, until := f.path+".new", time.Now().Add(patience)
	for {
		next, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if !errors.Is(err, fs.ErrExist) {
			return next, err
		}
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > stale {
			_ = os.Remove(path) // who made it is gone
			continue
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("%s is there: another process writes the file, or was ended while it did", path)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
