package audit

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/fermata-agents/fermata/agent"
)

// AliveInterval is how often a process writes at least. If a process is open and its last
// entry is older, the process was killed, or the record was cut.
const AliveInterval = 10 * time.Minute

// turnWithin is how long a process waits for the file's lock, and addWithin how long an
// entry may take in all. A workflow task waits for it, and may take 10 s.
const (
	turnWithin = 2 * time.Second
	addWithin  = 4 * time.Second
)

// LockPath returns the path of the file that processes lock to add to a record.
func LockPath(path string) string { return path + ".lock" }

// Writer adds to a record. All processes of a machine may add to one file; they take
// turns. It is safe for concurrent use.
type Writer struct {
	path    string
	key     ed25519.PrivateKey
	process string
	stop    chan struct{}
	stopped sync.WaitGroup

	turn  chan struct{} // a lock: its holder writes
	known place         // the end of the record that this process saw last
}

// place is an end of a record.
type place struct {
	size   int64
	n      int64
	digest string
}

// Open opens a record for adding, makes its file if there is none, and adds an entry
// about that. Its errors are [agent.CodeNotWritten], and [agent.CodeBadSignature] if the
// record's last line is not signed by this key: keep that file, and use another.
func Open(path string, key ed25519.PrivateKey, what string) (*Writer, error) {
	host, _ := os.Hostname()
	w := &Writer{path: path, key: key, stop: make(chan struct{}), turn: make(chan struct{}, 1), process: host + "/" + strconv.Itoa(os.Getpid()) + "/" + strconv.FormatInt(time.Now().UnixNano(), 36)}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, notWritten(path, err)
	}
	if err := w.Append(Entry{Kind: KindOpened, What: what}); err != nil {
		return nil, err
	}
	w.stopped.Go(w.live)
	return w, nil
}

// live writes an entry at intervals, as a sign of life.
func (w *Writer) live() {
	t := time.NewTicker(AliveInterval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			_ = w.Append(Entry{Kind: KindAlive}) // the next Append returns the error
		case <-w.stop:
			return
		}
	}
}

// Close adds a last entry for this process. Do not use the writer after it.
func (w *Writer) Close() error {
	close(w.stop)
	w.stopped.Wait()
	return w.Append(Entry{Kind: KindClosed})
}

// Check returns the error that [Open] would, as far as that is known without a write. It
// adds nothing and makes no file.
func Check(path string, key ed25519.PrivateKey) error {
	w := &Writer{path: path, key: key, turn: make(chan struct{}, 1)}
	return w.within(w.check)
}

// check needs the process's turn.
func (w *Writer) check() error {
	err := opens(LockPath(w.path), os.O_RDONLY, func(*os.File) error { return nil })
	if err == nil {
		err = opens(w.path, os.O_RDWR|os.O_APPEND, func(f *os.File) error {
			_, _, err := w.end(f)
			return err
		})
	}
	if err != nil {
		return notWritten(w.path, err)
	}
	return nil
}

// opens opens a file for do. If there is none, it checks whether it could be made.
func opens(path string, flag int, do func(*os.File) error) error {
	f, err := os.OpenFile(path, flag, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return makes(filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

// makes returns why no file can be made in a folder, which may have to be made itself.
func makes(dir string) error {
	for _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir); _, err = os.Stat(dir) {
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".audit-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Append writes entries in their order. When it returns nil they are on disk. Its errors
// are [agent.CodeNotWritten]; then they may be on disk or not.
func (w *Writer) Append(entries ...Entry) error {
	return w.within(func() error { return w.add(entries) })
}

// within calls do in the process's turn. It gives up after addWithin.
func (w *Writer) within(do func() error) error {
	late := time.NewTimer(addWithin)
	defer late.Stop()
	select {
	case w.turn <- struct{}{}:
	case <-late.C:
		return notWritten(w.path, errLate)
	}
	written := make(chan error, 1)
	go func() { // a file system that hangs keeps the turn, but not the caller
		written <- do()
		<-w.turn
	}()
	select {
	case err := <-written:
		return err
	case <-late.C:
		return notWritten(w.path, errLate)
	}
}

var errLate = fmt.Errorf("it was not done within %s", addWithin)

// add needs the process's turn.
func (w *Writer) add(entries []Entry) error {
	ctx, cancel := context.WithTimeout(context.Background(), turnWithin)
	defer cancel()
	// Between processes the lock file counts; the turn is only for this process.
	lock := flock.New(LockPath(w.path))
	if _, err := lock.TryLockContext(ctx, time.Millisecond); err != nil {
		return notWritten(w.path, fmt.Errorf("another process has its lock: %w", err))
	}
	defer lock.Close()
	f, err := os.OpenFile(w.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return notWritten(w.path, err)
	}
	err = w.append(f, entries)
	if err = errors.Join(err, f.Close()); err != nil {
		return notWritten(w.path, err)
	}
	return nil
}

func notWritten(path string, err error) error {
	if errors.Is(err, agent.CodeBadSignature) {
		return err
	}
	return agent.Errorf(agent.CodeNotWritten, "the audit in %s can't be written: %w", path, err)
}

func (w *Writer) append(f *os.File, entries []Entry) error {
	at, half, err := w.end(f)
	if err != nil {
		return err
	}
	// The half line was never acknowledged, so nothing that took effect is removed. An
	// entry says so.
	if half > 0 {
		if err := f.Truncate(at.size); err != nil {
			return err
		}
		entries = append([]Entry{{Kind: KindRepaired, Count: half}}, entries...)
	}
	var lines []byte
	for _, e := range entries {
		at.n++
		e.V, e.N, e.Prev, e.Time, e.Process = agent.Version, at.n, at.digest, time.Now().UTC(), w.process
		line, err := e.seal(w.key)
		if err != nil {
			return err
		}
		at.digest = digest(line)
		lines = append(lines, line...)
	}
	if _, err := f.Write(lines); err != nil {
		return err
	}
	// The caller lets the verb take effect now, so it must survive a power failure.
	if err := f.Sync(); err != nil {
		return err
	}
	at.size += int64(len(lines))
	w.known = at
	return nil
}

// end returns the record's end, and how many bytes of a half-written line are behind it.
// A record that is shorter than this process knew was cut. Then the next entry gets the
// number that it would have had, so that the gap shows.
func (w *Writer) end(f *os.File) (at place, half int64, err error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return at, 0, err
	case info.Size() == w.known.size && w.known.n > 0: // no other process has written since
		return w.known, 0, nil
	case info.Size() < w.known.size:
		return place{info.Size(), w.known.n, w.known.digest}, 0, nil
	case info.Size() == 0:
		return place{digest: first}, 0, nil
	}
	// Enough for a whole line before a half one, so a long record is not read again.
	tail := make([]byte, min(info.Size(), 2*maxLine))
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil && err != io.EOF {
		return at, 0, err
	}
	whole := tail[:bytes.LastIndexByte(tail, '\n')+1]
	at.size, half = info.Size()-int64(len(tail)-len(whole)), int64(len(tail)-len(whole))
	if len(whole) == 0 {
		if int64(len(tail)) < info.Size() {
			return at, 0, fmt.Errorf("its last line is longer than %d bytes", maxLine)
		}
		at.digest = first
		return at, half, nil
	}
	last := whole[bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1:]
	e, err := open(bytes.TrimSuffix(last, []byte("\n")), w.key.Public().(ed25519.PublicKey))
	if err != nil {
		return at, 0, agent.Errorf(agent.CodeBadSignature, "the audit in %s ends with a line that another key signed: keep that file, and use another one: %w", w.path, err)
	}
	at.n, at.digest = e.N, digest(last)
	return at, half, nil
}
