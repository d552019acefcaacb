package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fermata-agents/fermata/agent"
	"github.com/gofrs/flock"
)

// Dir is a store on files: chunks/ab/abcd… and heads/NAME.json in one folder.
// Files are written beside their place and moved there, so that a reader and a
// crash see an old file or a new one and never a half. All processes that use
// one session must see the same folder.
type Dir struct {
	root   string
	shared bool
}

// DirOptions says more of a folder; nil means every default.
type DirOptions struct {
	// Shared says that every worker of the task queue sees this folder, on
	// whatever machine it runs. Without it a worker refuses the folder where the
	// Temporal server is on another machine.
	Shared bool
}

// OpenDir opens a store in a folder of its own, which is made where it is missing.
func OpenDir(root string, o *DirOptions) (*Dir, error) {
	root, err := filepath.Abs(root)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Join(root, "chunks"), 0o700), os.MkdirAll(filepath.Join(root, "heads"), 0o700))
	}
	if err != nil {
		return nil, agent.Errorf(agent.StoreUnavailable, "opening the store in %s: %w", root, err)
	}
	return &Dir{root: root, shared: o != nil && o.Shared}, nil
}

// Root is the store's folder.
func (d *Dir) Root() string { return d.root }

// Shared tells what the options said.
func (d *Dir) Shared() bool { return d.shared }

// PutChunk implements [Store].
func (d *Dir) PutChunk(_ context.Context, digest string, data []byte) error {
	path := d.chunk(digest)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	return d.write(path, data)
}

// Chunk implements [Store].
func (d *Dir) Chunk(_ context.Context, digest string) ([]byte, error) {
	data, err := os.ReadFile(d.chunk(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, agent.Errorf(agent.ChunkMissing, "chunk %s is not in the store %s; does every worker use this folder?", digest, d.root)
	}
	if err != nil {
		return nil, agent.Errorf(agent.StoreUnavailable, "reading chunk %s: %w", digest, err)
	}
	return data, nil
}

// Head implements [Store].
func (d *Dir) Head(_ context.Context, session string) (h Head, err error) {
	data, err := os.ReadFile(d.head(session))
	if errors.Is(err, fs.ErrNotExist) {
		return h, agent.Errorf(agent.NotFound, "session %s is not in the store %s", session, d.root)
	}
	if err != nil {
		return h, agent.Errorf(agent.StoreUnavailable, "reading the head of session %s: %w", session, err)
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return h, agent.Errorf(agent.ChunkDamaged, "the head of session %s is damaged: %w; see %s", session, err, d.head(session))
	}
	return h, nil
}

// PutHead implements [Store]. A lock on the file keeps other processes out
// between the look and the write.
func (d *Dir) PutHead(ctx context.Context, h Head) error {
	lock := flock.New(d.head(h.Session) + ".lock")
	if err := lock.Lock(); err != nil {
		return agent.Errorf(agent.StoreUnavailable, "locking the head of session %s: %w", h.Session, err)
	}
	defer lock.Close()
	old, err := d.Head(ctx, h.Session)
	if err != nil && !errors.Is(err, agent.NotFound) {
		return err
	}
	if old.Version != h.Version-1 {
		return agent.Errorf(agent.Stale, "the head of session %s has version %d, not %d: another run wrote it", h.Session, old.Version, h.Version-1)
	}
	data, err := json.Marshal(h)
	if err != nil {
		return agent.Errorf(agent.Internal, "encoding the head of session %s: %w", h.Session, err)
	}
	return d.write(d.head(h.Session), data)
}

func (d *Dir) chunk(digest string) string {
	if len(digest) < 2 {
		return filepath.Join(d.root, "chunks", "none")
	}
	return filepath.Join(d.root, "chunks", digest[:2], filepath.Base(digest))
}

// head names a file after a session in a form that no file system folds or
// forbids, and that is short enough for all.
func (d *Dir) head(session string) string {
	const most = 120
	name := base64.RawURLEncoding.EncodeToString([]byte(session))
	if len(name) > most {
		name = "sha256-" + digestOf([]byte(session))
	}
	return filepath.Join(d.root, "heads", name+".json")
}

// write puts a file in its place at once and durably.
func (d *Dir) write(path string, data []byte) error {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = replace(path, data)
	}
	if err != nil {
		return agent.Errorf(agent.StoreUnavailable, "writing %s: %w", path, err)
	}
	return nil
}

func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already where all went well
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
