package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Chunks implements [Store].
func (d *Dir) Chunks(ctx context.Context, prefix string) iter.Seq2[ChunkInfo, error] {
	return func(yield func(ChunkInfo, error) bool) {
		folders, err := os.ReadDir(filepath.Join(d.root, "chunks"))
		if err = cmp.Or(ctx.Err(), err); err != nil {
			yield(ChunkInfo{}, agent.Errorf(agent.CodeStoreUnavailable, "listing the chunks of the store %s: %w", d.root, err))
			return
		}
		for _, f := range folders {
			if !f.IsDir() || !strings.HasPrefix(f.Name(), prefix[:min(2, len(prefix))]) {
				continue
			}
			chunks, err := d.folder(ctx, f.Name(), prefix)
			if err != nil {
				yield(ChunkInfo{}, agent.Errorf(agent.CodeStoreUnavailable, "listing the chunks of the store %s: %w", d.root, err))
				return
			}
			for _, c := range chunks {
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

// folder lists the chunks in one of the folders, which are named after the first two
// characters.
func (d *Dir) folder(ctx context.Context, name, prefix string) ([]ChunkInfo, error) {
	files, err := os.ReadDir(filepath.Join(d.root, "chunks", name))
	out := make([]ChunkInfo, 0, len(files))
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), name) || !strings.HasPrefix(f.Name(), prefix) {
			continue // no chunk, or not of this prefix
		}
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted since the listing
		}
		if err != nil {
			return nil, err
		}
		out = append(out, ChunkInfo{Name: f.Name(), Size: info.Size(), Put: info.ModTime()})
	}
	return out, cmp.Or(ctx.Err(), err)
}

// DeleteChunk implements [Store].
func (d *Dir) DeleteChunk(ctx context.Context, digest string, before time.Time) (bool, error) {
	if err := checkName(digest); err != nil {
		return false, err
	}
	unlock, err := d.lock(ctx, "chunk", digest)
	if err != nil {
		return false, err
	}
	defer unlock()
	// With the lock, because a put between the check and the removal would lose its chunk.
	path := d.chunk(digest)
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return false, d.folderInstead(digest)
	}
	if err == nil && !info.ModTime().Before(before) {
		return false, nil
	}
	if err == nil {
		err = remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, agent.Errorf(agent.CodeStoreUnavailable, "deleting chunk %s: %w", digest, err)
	}
	return true, nil
}

// DeleteHead implements [Store].
func (d *Dir) DeleteHead(ctx context.Context, session string, version int64) error {
	unlock, err := d.lock(ctx, "head", session)
	if err != nil {
		return err
	}
	defer unlock()
	old, err := d.Head(ctx, session)
	switch {
	case errors.Is(err, agent.CodeNotFound):
		return nil
	case err != nil:
		return err
	case old.Version != version:
		return agent.Errorf(agent.CodeStale, "the head of session %s has version %d, not %d: another run wrote it", session, old.Version, version)
	}
	left, err := json.Marshal(tombstone{version + 1, old.Fence})
	if err != nil {
		return agent.Errorf(agent.CodeInternal, "encoding where session %s stands: %w", session, err)
	}
	if err := d.write(d.gone(session), left); err != nil { // written first: after a crash the head is still there and counts
		return err
	}
	if err := remove(d.head(session)); err != nil {
		return agent.Errorf(agent.CodeStoreUnavailable, "deleting the head of session %s: %w", session, err)
	}
	return nil
}

// remove removes a file durably.
func remove(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// Heads implements [Store].
func (d *Dir) Heads(ctx context.Context, prefix string) iter.Seq2[Head, error] {
	return func(yield func(Head, error) bool) {
		files, err := os.ReadDir(filepath.Join(d.root, "heads"))
		if err = cmp.Or(ctx.Err(), err); err != nil {
			yield(Head{}, agent.Errorf(agent.CodeStoreUnavailable, "listing the sessions of the store %s: %w", d.root, err))
			return
		}
		var sessions []string
		for _, f := range files {
			session, err := d.session(f.Name())
			if err != nil && (!yield(Head{}, err) || !errors.Is(err, agent.CodeChunkDamaged)) {
				return
			}
			if session != "" && strings.HasPrefix(session, prefix) {
				sessions = append(sessions, session)
			}
		}
		// Sorted by name, because encoded names have another order.
		slices.Sort(sessions)
		for _, s := range sessions {
			h, err := d.Head(ctx, s)
			if errors.Is(err, agent.CodeNotFound) {
				continue // deleted since the listing
			}
			if !yield(h, err) || err != nil && !errors.Is(err, agent.CodeChunkDamaged) {
				return
			}
		}
	}
}

// session returns the session of a head's file, from its name or, if the name is a hash,
// from its content. It is empty if the file is no head or is gone.
func (d *Dir) session(file string) (string, error) {
	name, ok := strings.CutSuffix(file, headSuffix)
	if !ok {
		return "", nil
	}
	// Only names that this store writes count; other files are ignored.
	if !strings.HasPrefix(name, hashed) {
		session, _ := base64.RawURLEncoding.DecodeString(name)
		if d.head(string(session)) != filepath.Join(d.root, "heads", file) {
			return "", nil
		}
		return string(session), nil
	}
	path := filepath.Join(d.root, "heads", file)
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if errors.Is(err, agent.CodeChunkDamaged) {
		return "", agent.Errorf(agent.CodeChunkDamaged, "the head of a session is damaged: %w; remove it", err)
	}
	if err != nil {
		return "", agent.Errorf(agent.CodeStoreUnavailable, "reading the head of a session: %w", err)
	}
	var h Head
	if err := json.Unmarshal(data, &h); err != nil {
		return "", agent.Errorf(agent.CodeChunkDamaged, "the head of a session is damaged: %w; see %s", err, path)
	}
	if d.head(h.Session) != path {
		return "", agent.Errorf(agent.CodeChunkDamaged, "the head of a session is damaged: it belongs to session %s; see %s", h.Session, path)
	}
	return h.Session, nil
}
