package store

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// cache keeps values that were read and checked, by name, up to a total size. Chunks
// never change, so nothing in it goes stale. It is safe for concurrent use.
type cache[T any] struct {
	mu   sync.Mutex
	kept *simplelru.LRU[string, sized[T]]
	size int
	most int
}

type sized[T any] struct {
	value T
	size  int
}

func newCache[T any](most int) *cache[T] {
	c := &cache[T]{most: most}
	// A second limit, on the number of entries. The first one is the total size.
	c.kept, _ = simplelru.NewLRU(100_000, func(_ string, v sized[T]) { c.size -= v.size })
	return c
}

func (c *cache[T]) get(name string) (value T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.kept.Get(name)
	return v.value, ok
}

func (c *cache[T]) add(name string, value T, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.kept.Contains(name) {
		c.size += size
		c.kept.Add(name, sized[T]{value, size})
	}
	// The newest entry stays however large it is: otherwise a long log would be read again each
	// time.
	for c.size > c.most && c.kept.Len() > 1 {
		c.kept.RemoveOldest()
	}
}

func (c *cache[T]) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.Remove(name)
}

func (c *cache[T]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.Purge()
}
