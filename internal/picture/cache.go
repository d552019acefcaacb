package picture

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/semaphore"
)

const (
	// maxMemory is how many bytes a process needs at most for the copies that it makes at the
	// same time, and so the most that one may need.
	maxMemory = 512 << 20
	// maxKept is how many bytes of copies a Cache keeps, and maxCopies how many copies.
	maxKept   = 64 << 20
	maxCopies = 10_000
)

var room = semaphore.NewWeighted(maxMemory)

// Cache makes copies, and keeps them: a model gets the same ones in every turn. Its zero value is
// ready for use. It is safe for concurrent use.
type Cache struct {
	mu   sync.Mutex
	kept *simplelru.LRU[key, made]
	size int
}

// key is all that a copy depends on. The name stands for the image.
type key struct {
	name, mediaType string
	png, jpeg, side int
}

// made is a copy, or why there is none.
type made struct {
	copy Image
	err  error
}

// Fit returns an image within bounds: the one that it gets, or else a copy that is smaller or of
// another type. No other image may have the name. Errors are an [Unfit] and the context's.
func (c *Cache) Fit(ctx context.Context, name string, in Image, b Bounds) (Image, error) {
	memory, err := look(in, b)
	if err != nil || memory == 0 {
		return in, err
	}
	k := key{name, in.MediaType, b.Files["image/png"], b.Files["image/jpeg"], b.Side}
	if m, ok := c.get(k); ok {
		return m.copy, m.err
	}
	if err := room.Acquire(ctx, memory); err != nil {
		return Image{}, err
	}
	defer room.Release(memory)
	if m, ok := c.get(k); ok { // another call made it meanwhile
		return m.copy, m.err
	}
	var m made
	m.copy, m.err = copyOf(ctx, in, b)
	if m.err == nil || errors.As(m.err, new(Unfit)) {
		c.add(k, m)
	}
	return m.copy, m.err
}

func (c *Cache) get(k key) (made, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept, _ = simplelru.NewLRU(maxCopies, func(_ key, m made) { c.size -= len(m.copy.Data) })
	}
	return c.kept.Get(k)
}

func (c *Cache) add(k key, m made) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept.Contains(k) {
		return
	}
	c.kept.Add(k, m)
	for c.size += len(m.copy.Data); c.size > maxKept; {
		c.kept.RemoveOldest()
	}
}
