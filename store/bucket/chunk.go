package bucket

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob"

	"github.com/fermata-agents/fermata/store"
)

// Keys of chunks are chunks/ab/DIGEST!TIME. TIME is the time of the put in nanoseconds,
// and some random letters. The mark sorts before all characters of names, so chunks are
// listed in the order of their names.
const (
	chunkFolder = "chunks/"
	mark        = "!"
	timeDigits  = 16
	randoms     = 8
	// folderDigits is how many characters of a name are its folder's name.
	folderDigits = 2
)

// chunkPrefix returns the beginning of the keys of a chunk's objects, and of no others.
func chunkPrefix(name string) string {
	return chunkFolder + folded(name) + mark
}

// folded returns a name, or the beginning of one, with its folder.
func folded(name string) string {
	if len(name) < folderDigits {
		return name
	}
	return name[:folderDigits] + "/" + name
}

// PutChunk implements [store.Store].
func (s *Store) PutChunk(ctx context.Context, name string, data []byte) error {
	key := chunkPrefix(name) + fmt.Sprintf("%0*x", timeDigits, s.now().UnixNano()) + rand.Text()[:randoms]
	if err := s.write(ctx, key, data); err != nil {
		return s.unavailable(err, "writing chunk %s to", name)
	}
	return nil
}

// Chunk implements [store.Store].
func (s *Store) Chunk(ctx context.Context, name string) ([]byte, error) {
	return s.newest(ctx, name, func(ctx context.Context, o *blob.ListObject) ([]byte, error) { return s.read(ctx, o.Key) })
}

// ChunkStart implements [store.Store].
func (s *Store) ChunkStart(ctx context.Context, name string, most int) ([]byte, error) {
	return s.newest(ctx, name, func(ctx context.Context, o *blob.ListObject) ([]byte, error) {
		if o.Size == 0 {
			return []byte{}, nil // an empty object has no range that can be read
		}
		r, err := s.b.NewRangeReader(ctx, o.Key, 0, int64(most), nil)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		return data, cmp.Or(err, r.Close())
	})
}

// newest reads the newest object of a chunk.
func (s *Store) newest(ctx context.Context, name string, read func(ctx context.Context, o *blob.ListObject) ([]byte, error)) ([]byte, error) {
	for range tries {
		var last *blob.ListObject
		for o, err := range s.list(ctx, chunkPrefix(name)) {
			if err != nil {
				return nil, s.unavailable(err, "looking for chunk %s in", name)
			}
			if _, ok := chunkOf(o); ok { // the time is in the key, so the last one is the newest
				last = o
			}
		}
		if last == nil {
			return nil, store.Missing(name, s.name)
		}
		data, err := read(ctx, last)
		if err == nil {
			return data, nil
		}
		// It was removed after it was listed. A newer object may be there: list again.
		if !missing(err) {
			return nil, s.unavailable(err, "reading chunk %s from", name)
		}
	}
	return nil, s.unavailable(errBusy, "reading chunk %s from", name)
}

// chunkOf reads what is known of a chunk off one of its objects; ok reports whether it is one.
func chunkOf(o *blob.ListObject) (c store.ChunkInfo, ok bool) {
	name, rest, _ := strings.Cut(o.Key[strings.LastIndexByte(o.Key, '/')+1:], mark)
	if len(rest) != timeDigits+randoms {
		return c, false
	}
	put, err := strconv.ParseInt(rest[:timeDigits], 16, 64)
	c = store.ChunkInfo{Name: name, Size: o.Size, Put: time.Unix(0, put)}
	// The later time counts: a writer's slow clock must not make a chunk look old.
	if o.ModTime.After(c.Put) {
		c.Put = o.ModTime
	}
	return c, err == nil
}

// Chunks implements [store.Store].
func (s *Store) Chunks(ctx context.Context, prefix string) iter.Seq2[store.ChunkInfo, error] {
	return func(yield func(store.ChunkInfo, error) bool) {
		var last store.ChunkInfo // not yielded yet
		for o, err := range s.list(ctx, chunkFolder+folded(prefix)) {
			if err != nil {
				yield(store.ChunkInfo{}, s.unavailable(err, "listing the chunks of"))
				return
			}
			c, ok := chunkOf(o)
			if !ok {
				continue // nothing of ours
			}
			if last.Name != "" && last.Name != c.Name && !yield(last, nil) {
				return
			}
			if last.Name == c.Name && last.Put.After(c.Put) {
				c.Put = last.Put
			}
			last = c
		}
		if last.Name != "" {
			yield(last, nil)
		}
	}
}

// DeleteChunk implements [store.Store].
func (s *Store) DeleteChunk(ctx context.Context, name string, before time.Time) (gone bool, err error) {
	gone = true
	for o, err := range s.list(ctx, chunkPrefix(name)) {
		if err == nil {
			c, ok := chunkOf(o)
			if !ok {
				continue // not ours
			}
			if !c.Put.Before(before) {
				gone = false
				continue
			}
			err = s.remove(ctx, o.Key)
		}
		if err != nil {
			return false, s.unavailable(err, "deleting chunk %s from", name)
		}
	}
	return gone, nil
}
