package bucket

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// Keys of chunks are chunks/ab/DIGEST!TIME, where TIME is when it was put, in
// nanoseconds, and a few random letters. The mark comes before all that digests have,
// so that they are listed in their order.
const (
	chunkFolder = "chunks/"
	mark        = "!"
	timeDigits  = 16
	randoms     = 8
)

// chunkPrefix begins the keys of a chunk's objects, and of none else.
func chunkPrefix(digest string) string {
	return chunkFolder + digest[:min(2, len(digest))] + "/" + digest + mark
}

// PutChunk implements [store.Store].
func (s *Store) PutChunk(ctx context.Context, digest string, data []byte) error {
	key := chunkPrefix(digest) + fmt.Sprintf("%0*x", timeDigits, s.now().UnixNano()) + rand.Text()[:randoms]
	if err := s.write(ctx, key, data); err != nil {
		return s.unavailable(err, "writing chunk %s to", digest)
	}
	return nil
}

// Chunk implements [store.Store].
func (s *Store) Chunk(ctx context.Context, digest string) ([]byte, error) {
	for range tries {
		last := ""
		for o, err := range s.list(ctx, chunkPrefix(digest)) {
			if err != nil {
				return nil, s.unavailable(err, "looking for chunk %s in", digest)
			}
			if _, ok := chunkOf(o); ok {
				last = o.Key
			}
		}
		if last == "" {
			return nil, agent.Errorf(agent.ChunkMissing, "chunk %s is not in the store, %s; does every worker use this one?", digest, s.name)
		}
		data, err := s.read(ctx, last)
		if err == nil {
			return data, nil
		}
		if !missing(err) {
			return nil, s.unavailable(err, "reading chunk %s from", digest)
		}
	}
	return nil, s.unavailable(errBusy, "reading chunk %s from", digest)
}

// chunkOf reads what is known of a chunk off one of its objects; ok tells whether it is one.
func chunkOf(o *blob.ListObject) (c store.ChunkInfo, ok bool) {
	name := o.Key[strings.LastIndexByte(o.Key, '/')+1:]
	digest, rest, _ := strings.Cut(name, mark)
	if len(rest) != timeDigits+randoms {
		return c, false
	}
	put, err := strconv.ParseInt(rest[:timeDigits], 16, 64)
	c = store.ChunkInfo{Digest: digest, Size: o.Size, Put: time.Unix(0, put)}
	if o.ModTime.After(c.Put) {
		c.Put = o.ModTime
	}
	return c, err == nil
}

// Chunks implements [store.Store].
func (s *Store) Chunks(ctx context.Context) iter.Seq2[store.ChunkInfo, error] {
	return func(yield func(store.ChunkInfo, error) bool) {
		var last store.ChunkInfo // not told yet
		for o, err := range s.list(ctx, chunkFolder) {
			if err != nil {
				yield(store.ChunkInfo{}, s.unavailable(err, "listing the chunks of"))
				return
			}
			c, ok := chunkOf(o)
			if !ok {
				continue // nothing of ours
			}
			if last.Digest != "" && last.Digest != c.Digest && !yield(last, nil) {
				return
			}
			if last.Digest == c.Digest && last.Put.After(c.Put) {
				c.Put = last.Put
			}
			last = c
		}
		if last.Digest != "" {
			yield(last, nil)
		}
	}
}

// DeleteChunk implements [store.Store].
func (s *Store) DeleteChunk(ctx context.Context, digest string, before time.Time) (gone bool, err error) {
	gone = true
	for o, err := range s.list(ctx, chunkPrefix(digest)) {
		if err == nil {
			c, ok := chunkOf(o)
			if !ok {
				continue // nothing of ours
			}
			if !c.Put.Before(before) {
				gone = false
				continue
			}
			err = s.remove(ctx, o.Key)
		}
		if err != nil {
			return false, s.unavailable(err, "deleting chunk %s from", digest)
		}
	}
	return gone, nil
}
