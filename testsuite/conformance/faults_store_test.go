package conformance_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite/conformance"
)

// badStore is a store that something is wrong with: what is not nil is done in the
// place of the store.
type badStore struct {
	store.Store
	putChunk    func(ctx context.Context, digest string, data []byte) error
	chunk       func(ctx context.Context, digest string) ([]byte, error)
	chunks      func(ctx context.Context, prefix string) iter.Seq2[store.ChunkInfo, error]
	chunkStart  func(ctx context.Context, name string, most int) ([]byte, error)
	deleteChunk func(ctx context.Context, digest string, before time.Time) (bool, error)
	head        func(ctx context.Context, session string) (store.Head, error)
	putHead     func(ctx context.Context, h store.Head) error
	heads       func(ctx context.Context, prefix string) iter.Seq2[store.Head, error]
}

func (s *badStore) PutChunk(ctx context.Context, digest string, data []byte) error {
	if s.putChunk != nil {
		return s.putChunk(ctx, digest, data)
	}
	return s.Store.PutChunk(ctx, digest, data)
}

func (s *badStore) Chunk(ctx context.Context, digest string) ([]byte, error) {
	if s.chunk != nil {
		return s.chunk(ctx, digest)
	}
	return s.Store.Chunk(ctx, digest)
}

func (s *badStore) ChunkStart(ctx context.Context, name string, most int) ([]byte, error) {
	if s.chunkStart != nil {
		return s.chunkStart(ctx, name, most)
	}
	return s.Store.ChunkStart(ctx, name, most)
}

func (s *badStore) Chunks(ctx context.Context, prefix string) iter.Seq2[store.ChunkInfo, error] {
	if s.chunks != nil {
		return s.chunks(ctx, prefix)
	}
	return s.Store.Chunks(ctx, prefix)
}

func (s *badStore) DeleteChunk(ctx context.Context, digest string, before time.Time) (bool, error) {
	if s.deleteChunk != nil {
		return s.deleteChunk(ctx, digest, before)
	}
	return s.Store.DeleteChunk(ctx, digest, before)
}

func (s *badStore) Head(ctx context.Context, session string) (store.Head, error) {
	if s.head != nil {
		return s.head(ctx, session)
	}
	return s.Store.Head(ctx, session)
}

func (s *badStore) PutHead(ctx context.Context, h store.Head) error {
	if s.putHead != nil {
		return s.putHead(ctx, h)
	}
	return s.Store.PutHead(ctx, h)
}

func (s *badStore) Heads(ctx context.Context, prefix string) iter.Seq2[store.Head, error] {
	if s.heads != nil {
		return s.heads(ctx, prefix)
	}
	return s.Store.Heads(ctx, prefix)
}

// backwards lists everything in the wrong order.
func backwards[T any](list iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var all []T
		for v, err := range list {
			if err != nil {
				yield(v, err)
				return
			}
			all = append(all, v)
		}
		for _, v := range slices.Backward(all) {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// locked holds a lock while it lists.
func locked[T any](mu sync.Locker, list iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		mu.Lock()
		defer mu.Unlock()
		list(yield)
	}
}

// only lists some of a list.
func only[T any](list iter.Seq2[T, error], wanted func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range list {
			if (err != nil || wanted(v)) && !yield(v, err) {
				return
			}
		}
	}
}

// renamed keeps heads under other names.
func renamed(other func(string) string) func(*badStore) {
	return func(s *badStore) {
		s.putHead = func(ctx context.Context, h store.Head) error {
			h.Session = other(h.Session)
			return s.Store.PutHead(ctx, h)
		}
		s.head = func(ctx context.Context, session string) (store.Head, error) {
			h, err := s.Store.Head(ctx, other(session))
			h.Session = session
			return h, err
		}
	}
}

// unlisted is a store that lists no chunks.
func unlisted(s *badStore) {
	s.chunks = func(ctx context.Context, prefix string) iter.Seq2[store.ChunkInfo, error] {
		return only(s.Store.Chunks(ctx, prefix), func(store.ChunkInfo) bool { return false })
	}
}

var storeFaults = []struct {
	name, found string
	plant       func(*badStore)
}{
	{"a doubled save", "a head is saved once", func(s *badStore) {
		s.putHead = func(ctx context.Context, h store.Head) error {
			err := s.Store.PutHead(ctx, h)
			if old, _ := s.Store.Head(ctx, h.Session); errors.Is(err, agent.CodeStale) && old.Version == h.Version && old.Seq == h.Seq {
				return nil
			}
			return err
		}
	}},
	{"two writers that win", "one of many writers of a head wins", func(s *badStore) {
		s.putHead = func(ctx context.Context, h store.Head) error {
			old, err := s.Store.Head(ctx, h.Session)
			if err != nil && !errors.Is(err, agent.CodeNotFound) {
				return err
			}
			if old.Version != h.Version-1 {
				return agent.Errorf(agent.CodeStale, "version %d is there", old.Version)
			}
			runtime.Gosched()           // here, others do the same
			_ = s.Store.PutHead(ctx, h) // and one of them has been faster
			return nil
		}
	}},
	{"a fence that is not looked at", "a lower fence is refused", func(s *badStore) {
		s.putHead = func(ctx context.Context, h store.Head) error {
			fence := h.Fence
			old, _ := s.Store.Head(ctx, h.Session)
			if old.Fence.Compare(fence) > 0 {
				h.Fence = old.Fence
			}
			return s.Store.PutHead(ctx, h)
		}
	}},
	{"a version that counts anew after a deletion", "a late twin writer changes nothing", func(s *badStore) {
		s.putHead = func(ctx context.Context, h store.Head) error {
			old, err := s.Store.Head(ctx, h.Session)
			if errors.Is(err, agent.CodeNotFound) {
				h.Version, h.Fence.Chain = old.Version+1, max(h.Fence.Chain, old.Fence.Chain+1)
			}
			return s.Store.PutHead(ctx, h)
		}
	}},
	{"a write that takes what is there for its own", "a late twin writer changes nothing", func(s *badStore) {
		s.putHead = func(ctx context.Context, h store.Head) error {
			old, _ := s.Store.Head(ctx, h.Session)
			h.Version, h.Fence.Chain = old.Version+1, max(h.Fence.Chain, old.Fence.Chain)
			h.Fence.N = max(h.Fence.N, old.Fence.N)
			return s.Store.PutHead(ctx, h)
		}
	}},
	{"a backlog that a refused write leaves", "a late twin writer changes nothing", func(s *badStore) {
		s.putHead = func(ctx context.Context, h store.Head) error {
			err := s.Store.PutHead(ctx, h)
			if old, gone := s.Store.Head(ctx, h.Session); errors.Is(err, agent.CodeStale) && gone == nil && len(h.Backlog.Events) > 0 {
				old.Version, old.Backlog = old.Version+1, h.Backlog
				return s.Store.PutHead(ctx, old)
			}
			return err
		}
	}},
	{"a backlog that a refused write takes", "a late twin writer changes nothing", func(s *badStore) {
		s.putHead = func(ctx context.Context, h store.Head) error {
			err := s.Store.PutHead(ctx, h)
			if old, _ := s.Store.Head(ctx, h.Session); errors.Is(err, agent.CodeStale) && len(old.Backlog.Events) > 0 {
				old.Version, old.Backlog = old.Version+1, h.Backlog
				return s.Store.PutHead(ctx, old)
			}
			return err
		}
	}},
	{"a session that is listed for each save", "a head is saved once", func(s *badStore) {
		s.heads = func(ctx context.Context, prefix string) iter.Seq2[store.Head, error] {
			return func(yield func(store.Head, error) bool) {
				for h, err := range s.Store.Heads(ctx, prefix) {
					for range max(1, h.Version) {
						if !yield(h, err) {
							return
						}
					}
				}
			}
		}
	}},
	{"a field that is dropped", "a head is kept whole", func(s *badStore) {
		s.putHead = func(ctx context.Context, h store.Head) error {
			h.Receipts = nil
			return s.Store.PutHead(ctx, h)
		}
	}},
	{"half a chunk", "a chunk is whole or not there", func(s *badStore) {
		read := make(chan struct{}, 1)
		s.putChunk = func(ctx context.Context, digest string, data []byte) error {
			if err := s.Store.PutChunk(ctx, digest, data[:len(data)/2]); err != nil {
				return err
			}
			select { // the rest is written when somebody has read the half
			case <-read:
			case <-ctx.Done():
				return ctx.Err()
			}
			return s.Store.PutChunk(ctx, digest, data)
		}
		s.chunk = func(ctx context.Context, digest string) ([]byte, error) {
			data, err := s.Store.Chunk(ctx, digest)
			if err == nil {
				read <- struct{}{}
			}
			return data, err
		}
	}},
	{"half a head", "a head is whole while it is written", func(s *badStore) {
		read := make(chan struct{}, 1)
		var rest sync.Map
		s.putHead = func(ctx context.Context, h store.Head) error {
			half := h
			half.Run = ""
			if err := s.Store.PutHead(ctx, half); err != nil {
				return err
			}
			select { // the rest is written when somebody has read the half
			case <-read:
			case <-ctx.Done():
				return ctx.Err()
			}
			rest.Store(h.Version, h.Run)
			return nil
		}
		s.head = func(ctx context.Context, session string) (store.Head, error) {
			h, err := s.Store.Head(ctx, session)
			if run, ok := rest.Load(h.Version); ok {
				h.Run = run.(string)
			}
			if err == nil {
				select {
				case read <- struct{}{}:
				default:
				}
			}
			return h, err
		}
	}},
	{"names that are cut", "sessions of any name have heads of their own", renamed(func(name string) string { return name[:min(200, len(name))] })},
	{"names that are made into files'", "sessions of any name have heads of their own", renamed(func(name string) string { return strings.ReplaceAll(name, "/", ":") })},
	{"a prefix of any case", "heads are listed", func(s *badStore) {
		s.heads = func(ctx context.Context, prefix string) iter.Seq2[store.Head, error] {
			return only(s.Store.Heads(ctx, ""), func(h store.Head) bool {
				return strings.HasPrefix(strings.ToLower(h.Session), strings.ToLower(prefix))
			})
		}
	}},
	{"a list of a thousand chunks", "chunks are listed and renewed", func(s *badStore) {
		s.chunks = func(ctx context.Context, prefix string) iter.Seq2[store.ChunkInfo, error] {
			n := 0
			return only(s.Store.Chunks(ctx, prefix), func(store.ChunkInfo) bool { n++; return n <= 1000 })
		}
	}},
	{"a list that grows", "chunks are listed and renewed", func(s *badStore) {
		lists := 0
		s.chunks = func(ctx context.Context, prefix string) iter.Seq2[store.ChunkInfo, error] {
			lists++
			return func(yield func(store.ChunkInfo, error) bool) {
				for c, err := range s.Store.Chunks(ctx, prefix) {
					if !yield(c, err) {
						return
					}
				}
				if lists > 3 {
					yield(store.ChunkInfo{}, nil)
				}
			}
		}
	}},
	{"no chunk is listed", "only old chunks are deleted", unlisted},
	{"no chunk is listed that is put and deleted", "a chunk that is put is there", unlisted},
	{"a list that nobody can leave", "heads are listed", func(s *badStore) {
		s.heads = func(ctx context.Context, prefix string) iter.Seq2[store.Head, error] {
			return func(yield func(store.Head, error) bool) {
				for h, err := range s.Store.Heads(ctx, prefix) {
					_ = yield(h, err)
				}
			}
		}
	}},
	{"a chunk that stays old", "chunks are listed and renewed", func(s *badStore) {
		s.putChunk = func(ctx context.Context, digest string, data []byte) error {
			if _, err := s.Store.Chunk(ctx, digest); err == nil {
				return nil
			}
			return s.Store.PutChunk(ctx, digest, data)
		}
	}},
	{"a prefix of chunks that is not looked at", "chunks are listed and renewed", func(s *badStore) {
		s.chunks = func(ctx context.Context, _ string) iter.Seq2[store.ChunkInfo, error] { return s.Store.Chunks(ctx, "") }
	}},
	{"a chunk's start that is longer", "a chunk is what was put", func(s *badStore) {
		s.chunkStart = func(ctx context.Context, name string, _ int) ([]byte, error) { return s.Store.Chunk(ctx, name) }
	}},
	{"chunks out of order", "chunks are listed and renewed", func(s *badStore) {
		s.chunks = func(ctx context.Context, prefix string) iter.Seq2[store.ChunkInfo, error] {
			return backwards(s.Store.Chunks(ctx, prefix))
		}
	}},
	{"heads out of order", "heads are listed", func(s *badStore) {
		s.heads = func(ctx context.Context, prefix string) iter.Seq2[store.Head, error] {
			return backwards(s.Store.Heads(ctx, prefix))
		}
	}},
	{"young chunks that are deleted", "only old chunks are deleted", func(s *badStore) {
		s.deleteChunk = func(ctx context.Context, digest string, _ time.Time) (bool, error) {
			return s.Store.DeleteChunk(ctx, digest, time.Now().Add(time.Hour))
		}
	}},
	{"a missing chunk with another code", "a chunk is what was put", func(s *badStore) {
		s.chunk = func(ctx context.Context, digest string) ([]byte, error) {
			data, err := s.Store.Chunk(ctx, digest)
			if errors.Is(err, agent.CodeChunkMissing) {
				err = agent.Errorf(agent.CodeNotFound, "chunk %s is not there", digest)
			}
			return data, err
		}
	}},
	{"a lost race with another code", "a head is saved once", func(s *badStore) {
		s.putHead = func(ctx context.Context, h store.Head) error {
			if err := s.Store.PutHead(ctx, h); err != nil {
				return errors.New("conflict")
			}
			return nil
		}
	}},
	{"memory that is shared", "data belongs to the caller", func(s *badStore) {
		var mu sync.Mutex
		kept := map[string][]byte{}
		s.putChunk = func(ctx context.Context, digest string, data []byte) error {
			mu.Lock()
			kept[digest] = data
			mu.Unlock()
			return s.Store.PutChunk(ctx, digest, data)
		}
		s.chunk = func(ctx context.Context, digest string) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			if data, ok := kept[digest]; ok && ctx.Err() == nil {
				return data, nil
			}
			return s.Store.Chunk(ctx, digest)
		}
	}},
	{"a list that holds a lock", "a store is used while it is listed", func(s *badStore) {
		var mu sync.Mutex
		s.chunks = func(ctx context.Context, prefix string) iter.Seq2[store.ChunkInfo, error] {
			return locked(&mu, s.Store.Chunks(ctx, prefix))
		}
		s.chunk = func(ctx context.Context, digest string) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			return s.Store.Chunk(ctx, digest)
		}
	}},
	{"a context that is not heard", "an ended context ends every call", func(s *badStore) {
		s.head = func(ctx context.Context, session string) (store.Head, error) {
			return s.Store.Head(context.WithoutCancel(ctx), session)
		}
	}},
}

func TestFaultsOfStoresAreFound(t *testing.T) {
	for _, c := range storeFaults {
		t.Run(c.name, func(t *testing.T) {
			bad := &badStore{Store: newMemory()}
			c.plant(bad)
			found := conformance.StoreFault(t, c.found, bad)
			require.NotEmpty(t, found)
			t.Log(found)
		})
	}
}
