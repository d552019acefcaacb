package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite/conformance"
)

// memory is a store that ends with its process: use it only as an
// example. Heads are kept as JSON, which copies them.
type memory struct {
	mu     sync.Mutex
	chunks map[string]chunk
	heads  map[string][]byte
	gone   map[string]store.Head // where deleted sessions stand
	own    map[string]string     // the store's identity and namespace
}

type chunk struct {
	data []byte
	put  time.Time
}

func newMemory() *memory {
	return &memory{chunks: map[string]chunk{}, heads: map[string][]byte{}, gone: map[string]store.Head{}, own: map[string]string{}}
}

// enter begins every method: a context that is over is a store that does not answer.
func (m *memory) enter(ctx context.Context, doing string) error {
	if ctx.Err() != nil {
		return agent.Errorf(agent.CodeStoreUnavailable, "%s: %w", doing, ctx.Err())
	}
	m.mu.Lock()
	return nil
}

func (m *memory) PutIfAbsent(ctx context.Context, key, value string) (string, error) {
	if err := m.enter(ctx, "reading the "+key); err != nil {
		return "", err
	}
	defer m.mu.Unlock()
	if m.own[key] == "" {
		m.own[key] = value
	}
	return m.own[key], nil
}

func (m *memory) PutChunk(ctx context.Context, name string, data []byte) error {
	if err := m.enter(ctx, "putting chunk "+name); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.chunks[name] = chunk{bytes.Clone(data), time.Now()}
	return nil
}

func (m *memory) Chunk(ctx context.Context, name string) ([]byte, error) {
	if err := m.enter(ctx, "reading chunk "+name); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	c, ok := m.chunks[name]
	if !ok {
		return nil, agent.Errorf(agent.CodeChunkMissing, "chunk %s is not in the store", name)
	}
	return bytes.Clone(c.data), nil
}

func (m *memory) ChunkStart(ctx context.Context, name string, most int) ([]byte, error) {
	data, err := m.Chunk(ctx, name)
	return data[:min(len(data), most)], err
}

// Chunks lists what is there when it begins, and holds no lock while it tells.
func (m *memory) Chunks(ctx context.Context, prefix string) iter.Seq2[store.ChunkInfo, error] {
	return func(yield func(store.ChunkInfo, error) bool) {
		if err := m.enter(ctx, "listing chunks"); err != nil {
			yield(store.ChunkInfo{}, err)
			return
		}
		var all []store.ChunkInfo
		for _, name := range slices.Sorted(maps.Keys(m.chunks)) {
			if c := m.chunks[name]; strings.HasPrefix(name, prefix) {
				all = append(all, store.ChunkInfo{Name: name, Size: int64(len(c.data)), Put: c.put})
			}
		}
		m.mu.Unlock()
		for _, c := range all {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func (m *memory) DeleteChunk(ctx context.Context, name string, before time.Time) (bool, error) {
	if err := m.enter(ctx, "deleting chunk "+name); err != nil {
		return false, err
	}
	defer m.mu.Unlock()
	if c, ok := m.chunks[name]; ok && !c.put.Before(before) {
		return false, nil
	}
	delete(m.chunks, name)
	return true, nil
}

// stored is the head that is there, or where a session without one stands.
func (m *memory) stored(session string) (h store.Head, err error) {
	raw, ok := m.heads[session]
	if !ok {
		left := m.gone[session]
		return store.Head{Session: session, Version: left.Version, Fence: left.Fence}, agent.Errorf(agent.CodeNotFound, "session %s has no head", session)
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return h, agent.Errorf(agent.CodeChunkDamaged, "the head of session %s can't be read: %w", session, err)
	}
	return h, nil
}

func (m *memory) Head(ctx context.Context, session string) (store.Head, error) {
	if err := m.enter(ctx, "reading the head of "+session); err != nil {
		return store.Head{}, err
	}
	defer m.mu.Unlock()
	return m.stored(session)
}

func (m *memory) PutHead(ctx context.Context, h store.Head) error {
	if err := m.enter(ctx, "putting the head of "+h.Session); err != nil {
		return err
	}
	defer m.mu.Unlock()
	old, err := m.stored(h.Session)
	if err != nil && agent.CodeOf(err) != agent.CodeNotFound {
		return err
	}
	if err := h.CheckReplaces(old); err != nil {
		return err
	}
	m.heads[h.Session], err = json.Marshal(h)
	return err
}

func (m *memory) Heads(ctx context.Context, prefix string) iter.Seq2[store.Head, error] {
	return func(yield func(store.Head, error) bool) {
		if err := m.enter(ctx, "listing heads"); err != nil {
			yield(store.Head{}, err)
			return
		}
		sessions := slices.Sorted(maps.Keys(m.heads))
		m.mu.Unlock()
		for _, session := range sessions {
			if !strings.HasPrefix(session, prefix) {
				continue
			}
			h, err := m.Head(ctx, session)
			if agent.CodeOf(err) == agent.CodeNotFound {
				continue // deleted meanwhile
			}
			if h.Session = session; !yield(h, err) || err != nil && agent.CodeOf(err) != agent.CodeChunkDamaged {
				return
			}
		}
	}
}

func (m *memory) DeleteHead(ctx context.Context, session string, version int64) error {
	if err := m.enter(ctx, "deleting the head of "+session); err != nil {
		return err
	}
	defer m.mu.Unlock()
	old, err := m.stored(session)
	switch {
	case agent.CodeOf(err) == agent.CodeNotFound:
		return nil
	case err != nil:
		return err
	case old.Version != version:
		return agent.Errorf(agent.CodeStale, "the head of session %s has version %d, not %d", session, old.Version, version)
	}
	delete(m.heads, session)
	old.Version++
	m.gone[session] = old
	return nil
}

// A test of a store is one call. Each of its subtests opens a new store.
func ExampleStore() {
	TestMemory := func(t *testing.T) {
		conformance.Store(t, func(*testing.T) store.Store { return newMemory() })
	}
	fmt.Printf("%T\n", TestMemory)
	// Output: func(*testing.T)
}
