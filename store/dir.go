package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/gofrs/flock"
)

// Dir is a store in a folder. It has chunks/ab/abcd…, heads/NAME.json, and gone/HASH.json
// with the version and fence of a deleted session. Files are written in new/ and then
// moved, so readers and crashes find an old file or a new one, never half of one. A
// chunk's time is the modification time of its file. All processes that use one session
// must see the same folder. Make one with [OpenDir].
type Dir struct {
	root   string
	shared bool
	id     atomic.Value // a string, once the identity was read
}

// DirOptions are optional; nil means all defaults.
type DirOptions struct {
	// Shared says that every worker of the task queue sees this folder, on whatever
	// machine it runs. Without it, a worker refuses the folder if the Temporal server is
	// on another machine.
	Shared bool
}

// OpenDir opens a store in its own folder, which it creates if it is missing. If it
// can't, the error is [agent.CodeStoreUnavailable].
func OpenDir(root string, o *DirOptions) (*Dir, error) {
	root, err := filepath.Abs(root)
	for _, part := range []string{"chunks", "heads", "gone", "locks", unfinished} {
		err = cmp.Or(err, os.MkdirAll(filepath.Join(root, part), 0o700))
	}
	if err != nil {
		return nil, agent.Errorf(agent.CodeStoreUnavailable, "opening the store in %s: %w", root, err)
	}
	d := &Dir{root: root, shared: o != nil && o.Shared}
	d.tidy()
	return d, nil
}

// unfinished is the folder for files that are being written.
const unfinished = "new"

// tidy removes files that crashed writers left: they may hold parts of sessions that are
// deleted later. What can't be removed now does no harm.
func (d *Dir) tidy() {
	const longest = time.Hour // how long writing a file may take
	left, _ := os.ReadDir(filepath.Join(d.root, unfinished))
	for _, e := range left {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > longest {
			_ = os.Remove(filepath.Join(d.root, unfinished, e.Name()))
		}
	}
}

// Root returns the store's folder.
func (d *Dir) Root() string { return d.root }

// Shared returns [DirOptions.Shared].
func (d *Dir) Shared() bool { return d.shared }

// PutChunk implements [Store].
func (d *Dir) PutChunk(ctx context.Context, digest string, data []byte) error {
	if err := checkName(digest); err != nil {
		return err
	}
	there, err := d.renew(ctx, digest)
	if there || err != nil {
		return err
	}
	return d.write(d.chunk(digest), data)
}

// renew updates a chunk's time, and reports whether it exists. The lock keeps this from
// happening between DeleteChunk's check and its removal.
func (d *Dir) renew(ctx context.Context, digest string) (bool, error) {
	unlock, err := d.lock(ctx, "chunk", digest)
	if err != nil {
		return false, err
	}
	defer unlock()
	now := time.Now()
	info, err := os.Stat(d.chunk(digest))
	if err == nil && info.IsDir() {
		return false, d.folderInstead(digest)
	}
	if err == nil {
		err = os.Chtimes(d.chunk(digest), now, now)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, agent.Errorf(agent.CodeStoreUnavailable, "renewing chunk %s: %w", digest, err)
	}
	return true, nil
}

// Chunk implements [Store].
func (d *Dir) Chunk(ctx context.Context, digest string) ([]byte, error) {
	if err := cmp.Or(over(ctx, "reading chunk", digest), checkName(digest)); err != nil {
		return nil, err
	}
	data, err := readFile(d.chunk(digest))
	if err != nil {
		return nil, d.unread(digest, err)
	}
	return data, nil
}

// unread returns the error of a chunk whose file can't be read.
func (d *Dir) unread(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cmp.Or(d.absent(), Missing(name, d.root))
	case errors.Is(err, agent.CodeChunkDamaged):
		return agent.Errorf(agent.CodeChunkDamaged, "chunk %s is damaged: %w; remove it", name, err)
	}
	return agent.Errorf(agent.CodeStoreUnavailable, "reading chunk %s: %w", name, err)
}

// maxFile is the largest file that is read, in bytes. No chunk and no head is larger,
// because at most maxPlain is unpacked. Whoever can write to the folder may put anything
// there.
const maxFile = maxPlain + 1<<20

// openFile opens a regular file. For anything else, such as a folder or a pipe, and for a
// file that is too long, the error is [agent.CodeChunkDamaged].
func openFile(path string) (f *os.File, size int64, err error) {
	// Without O_NONBLOCK, opening a pipe that nobody writes to would block forever.
	if f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = agent.Errorf(agent.CodeChunkDamaged, "%s is a folder", path)
	case !info.Mode().IsRegular():
		err = agent.Errorf(agent.CodeChunkDamaged, "%s is no file", path)
	case info.Size() > maxFile:
		err = agent.Errorf(agent.CodeChunkDamaged, "%s has %d bytes; at most %d are read", path, info.Size(), int64(maxFile))
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// readFile reads a regular file as it was when it was opened.
func readFile(path string) ([]byte, error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, size)
	// A file that shrank meanwhile gives what there is; its digest shows the rest.
	n, err := io.ReadFull(f, data)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:n], err
}

// absent returns an error if the folder is not the opened store any more. What is missing
// in it may be complete in the store.
func (d *Dir) absent() error {
	if _, err := os.Stat(filepath.Join(d.root, "heads")); err != nil {
		return agent.Errorf(agent.CodeStoreUnavailable, "the store %s is not there: %w; is it mounted?", d.root, err)
	}
	// An unmounted folder or another store would look like a store without the chunk.
	known, _ := d.id.Load().(string)
	if id, err := readFile(filepath.Join(d.root, identityKey)); known != "" && strings.TrimSpace(string(id)) != known {
		return agent.Errorf(agent.CodeStoreUnavailable, "%s has another store than the one that was opened: %w; mount that one again", d.root, cmp.Or(err, errors.New("its identity differs")))
	}
	return nil
}

// ChunkStart implements [Store].
func (d *Dir) ChunkStart(ctx context.Context, name string, most int) ([]byte, error) {
	if err := cmp.Or(over(ctx, "reading chunk", name), checkName(name)); err != nil {
		return nil, err
	}
	f, _, err := openFile(d.chunk(name))
	if err != nil {
		return nil, d.unread(name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(most)))
	if err != nil {
		return nil, d.unread(name, err)
	}
	return data, nil
}

// folderInstead returns the error of a folder in a chunk's place.
func (d *Dir) folderInstead(name string) error {
	return agent.Errorf(agent.CodeChunkDamaged, "chunk %s is damaged: %s is a folder; remove it", name, d.chunk(name))
}

// Head implements [Store].
func (d *Dir) Head(ctx context.Context, session string) (h Head, err error) {
	if err := over(ctx, "reading the head of session", session); err != nil {
		return h, err
	}
	data, err := readFile(d.head(session))
	if errors.Is(err, fs.ErrNotExist) {
		if h, err = d.tombstoneOf(session); err == nil {
			err = d.absent()
		}
		if err == nil {
			err = agent.Errorf(agent.CodeNotFound, "session %s is not in the store %s", session, d.root)
		}
		return h, err
	}
	if errors.Is(err, agent.CodeChunkDamaged) {
		return Head{Session: session}, agent.Errorf(agent.CodeChunkDamaged, "the head of session %s is damaged: %w; remove it, or restore it from a backup", session, err)
	}
	if err != nil {
		return h, agent.Errorf(agent.CodeStoreUnavailable, "reading the head of session %s: %w", session, err)
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return Head{Session: session}, agent.Errorf(agent.CodeChunkDamaged, "the head of session %s is damaged: %w; see %s", session, err, d.head(session))
	}
	if err := h.checkSession(session); err != nil {
		return Head{Session: session}, err
	}
	return h, nil
}

// tombstoneOf returns the version and fence of a session without a head.
func (d *Dir) tombstoneOf(session string) (Head, error) {
	h := Head{Session: session}
	data, err := readFile(d.gone(session))
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	var left tombstone
	if err == nil {
		err = json.Unmarshal(data, &left)
	}
	if err != nil {
		return h, agent.Errorf(agent.CodeStoreUnavailable, "reading where the deleted session %s stands: %w", session, err)
	}
	h.Version, h.Fence = left.Version, left.Fence
	return h, nil
}

// tombstone is what remains of a deleted session.
type tombstone struct {
	Version int64       `json:"version"`
	Fence   agent.Fence `json:"fence"`
}

// PutHead implements [Store]. The lock keeps other writers out between the check and the
// write.
func (d *Dir) PutHead(ctx context.Context, h Head) error {
	unlock, err := d.lock(ctx, "head", h.Session)
	if err != nil {
		return err
	}
	defer unlock()
	old, err := d.Head(ctx, h.Session)
	if err != nil && !errors.Is(err, agent.CodeNotFound) {
		return err
	}
	if err := h.CheckReplaces(old); err != nil {
		return err
	}
	data, err := json.Marshal(h)
	if err != nil {
		return agent.Errorf(agent.CodeInternal, "encoding the head of session %s: %w", h.Session, err)
	}
	return d.write(d.head(h.Session), data)
}

// lock locks a key against all other users of the folder, in this process or another,
// until unlock. Lock files have no session's name. They are never removed: removing one
// while others wait for it would let two in.
func (d *Dir) lock(ctx context.Context, kind, key string) (unlock func(), err error) {
	const again = time.Millisecond
	// 256 files for all keys of a kind: two keys may share a lock, which only costs time.
	l := flock.New(filepath.Join(d.root, "locks", kind+"-"+digestOf([]byte(key))[:2]))
	if _, err := l.TryLockContext(ctx, again); err != nil {
		return nil, agent.Errorf(agent.CodeStoreUnavailable, "locking %s %s in the store %s: %w", kind, key, d.root, err)
	}
	return func() { _ = l.Close() }, nil
}

// over returns an error if the context has ended: file operations do not check it.
func over(ctx context.Context, what, name string) error {
	if err := ctx.Err(); err != nil {
		return agent.Errorf(agent.CodeStoreUnavailable, "%s %s: %w", what, name, err)
	}
	return nil
}

// checkName refuses anything but a chunk's name: it might be a path.
func checkName(name string) error {
	if len(name) > maxName || !nameForm.MatchString(name) {
		return agent.Errorf(agent.CodeInvalidInput, "%.200q is no name of a chunk: it has 2 to %d of a-z, 0-9, - and ~, and at most one dot", name, maxName)
	}
	return nil
}

func (d *Dir) chunk(name string) string {
	return filepath.Join(d.root, "chunks", name[:2], name)
}

// Parts of the names of heads.
const (
	hashed     = "sha256-"
	headSuffix = ".json"
)

// head returns the file of a session's head. The name is short enough for every file
// system, and none folds or forbids it.
func (d *Dir) head(session string) string {
	const most = 120
	name := base64.RawURLEncoding.EncodeToString([]byte(session))
	if len(name) > most {
		name = hashed + digestOf([]byte(session))
	}
	return filepath.Join(d.root, "heads", name+headSuffix)
}

// gone returns the file with the version and fence of a deleted session. Its name does
// not reveal the session's.
func (d *Dir) gone(session string) string {
	return filepath.Join(d.root, "gone", digestOf([]byte(session))+headSuffix)
}

// write replaces a file atomically and durably. It makes no folder but a chunk's: the
// store's folder may be unmounted, and new folders would be in the mount point.
func (d *Dir) write(path string, data []byte) error {
	err := os.Mkdir(filepath.Dir(path), 0o700)
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = d.replace(path, data)
	}
	if err != nil {
		return agent.Errorf(agent.CodeStoreUnavailable, "writing %s: %w", path, err)
	}
	return nil
}

func (d *Dir) replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Join(d.root, unfinished), "*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it no longer exists after a success
	_, err = f.Write(data)
	now := time.Now() // some systems set a time a few milliseconds ago, which DeleteChunk would take for an old one
	// Synced before the rename: a crash must not leave an empty file under the final name.
	if err = cmp.Or(err, os.Chtimes(f.Name(), now, now), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename or a removal durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return cmp.Or(f.Sync(), f.Close())
}
