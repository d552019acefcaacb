package testsuite

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// Store checks that a store keeps the contract of [store.Store]. open returns an
// empty one, for each part of the check another, and closes it with the test.
func Store(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	for _, part := range storeParts {
		t.Run(part.name, func(t *testing.T) { part.check(t, open(t)) })
	}
}

// storePart is a sentence about stores, and the check of it.
type storePart struct {
	name  string
	check func(testing.TB, store.Store)
}

var storeParts = []storePart{
	{"a chunk is what was put", chunkIsWhatWasPut},
	{"a chunk is whole or not there", chunkIsWhole},
	{"chunks are listed and renewed", chunksAreListed},
	{"only old chunks are deleted", onlyOldChunksAreDeleted},
	{"a chunk that is put is there", chunkThatIsPutIsThere},
	{"a head is kept whole", headIsKeptWhole},
	{"a head is saved once", headIsSavedOnce},
	{"of many writers of a head one wins", oneWriterWins},
	{"sessions of any name have heads of their own", anyName},
	{"heads are listed", headsAreListed},
	{"only the head that was seen is deleted", onlyTheSeenHeadIsDeleted},
	{"a store is used while it is listed", listsDoNotBlock},
	{"what goes in and out is the caller's", memoryIsTheCallers},
	{"a context that is over ends all", contextEndsAll},
}

// numbered makes the digest of a chunk from a number.
func numbered(n int) string { return fmt.Sprintf("%x", sha256.Sum256([]byte{byte(n >> 8), byte(n)})) }

func chunkIsWhatWasPut(t testing.TB, s store.Store) {
	ctx := t.Context()
	_, err := s.Chunk(ctx, numbered(1))
	require.ErrorIs(t, err, agent.ChunkMissing)
	require.Contains(t, err.Error(), numbered(1))

	large := make([]byte, 2<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range large {
		large[i] = byte(random.Uint32())
	}
	for n, data := range [][]byte{[]byte("a\x00b"), {}, large} {
		for range 2 { // the second time is no error
			require.NoError(t, s.PutChunk(ctx, numbered(n), data))
			got, err := s.Chunk(ctx, numbered(n))
			require.NoError(t, err)
			require.True(t, slices.Equal(data, got), "%d bytes came back as %d", len(data), len(got))
		}
	}
}

// listedChunks lists all chunks.
func listedChunks(t testing.TB, s store.Store) []store.ChunkInfo {
	t.Helper()
	var all []store.ChunkInfo
	for c, err := range s.Chunks(t.Context()) {
		require.NoError(t, err)
		all = append(all, c)
	}
	return all
}

func chunksAreListed(t testing.TB, s store.Store) {
	const many = 600 // more than a store would read at once
	require.Empty(t, listedChunks(t, s))
	var want []string
	for n := range many {
		want = append(want, numbered(n))
		require.NoError(t, s.PutChunk(t.Context(), numbered(n), make([]byte, n%7)))
	}
	slices.Sort(want)
	before := listedChunks(t, s)
	var got []string
	for _, c := range before {
		got = append(got, c.Digest)
		require.WithinDuration(t, time.Now(), c.Put, time.Minute)
	}
	require.Equal(t, want, got)
	for range s.Chunks(t.Context()) {
		break // who has seen enough may leave
	}

	again := before[many/2]
	require.NoError(t, s.PutChunk(t.Context(), again.Digest, make([]byte, again.Size)))
	for i, c := range listedChunks(t, s) {
		if i == many/2 {
			require.True(t, c.Put.After(again.Put), "putting a chunk again makes it young")
			c.Put = again.Put
		}
		require.True(t, c.Put.Equal(before[i].Put), "no other chunk is renewed")
		require.Equal(t, before[i].Size, c.Size)
	}
}

func onlyOldChunksAreDeleted(t testing.TB, s store.Store) {
	ctx := t.Context()
	for n := range 3 {
		require.NoError(t, s.PutChunk(ctx, numbered(n), []byte("x")))
	}
	put := listedChunks(t, s)
	gone, err := s.DeleteChunk(ctx, put[0].Digest, put[0].Put)
	require.NoError(t, err)
	require.False(t, gone, "put at a time is not put before it")
	require.Len(t, listedChunks(t, s), 3)
	for range 2 { // what is gone is gone
		gone, err = s.DeleteChunk(ctx, put[0].Digest, put[0].Put.Add(time.Second))
		require.NoError(t, err)
		require.True(t, gone)
	}
	_, err = s.Chunk(ctx, put[0].Digest)
	require.ErrorIs(t, err, agent.ChunkMissing)
	require.Equal(t, put[1:], listedChunks(t, s))
	require.NoError(t, s.PutChunk(ctx, put[0].Digest, []byte("x")), "it may be put anew")
	require.Len(t, listedChunks(t, s), 3)
}

// chunkThatIsPutIsThere deletes an old chunk at the moment that it is put again:
// whichever comes first, it is there in the end.
func chunkThatIsPutIsThere(t testing.TB, s store.Store) {
	const rounds, each = 100, 4
	ctx := t.Context()
	for round := range rounds {
		require.NoError(t, s.PutChunk(ctx, numbered(1), []byte("x")))
		before := listedChunks(t, s)[0].Put.Add(time.Microsecond)
		var wg sync.WaitGroup
		for range each {
			wg.Go(func() {
				if err := s.PutChunk(ctx, numbered(1), []byte("x")); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if _, err := s.DeleteChunk(ctx, numbered(1), before); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		_, err := s.Chunk(ctx, numbered(1))
		require.NoError(t, err, "round %d", round)
	}
}

func oneWriterWins(t testing.TB, s store.Store) {
	const writers, versions = 50, 3
	ctx := t.Context()
	_, err := s.Head(ctx, "s")
	require.ErrorIs(t, err, agent.NotFound)
	require.ErrorIs(t, s.PutHead(ctx, store.Head{V: 1, Version: 2, Session: "s"}), agent.Stale, "the first version is 1")
	for version := range int64(versions) {
		var winner atomic.Int64
		var wg sync.WaitGroup
		all := make(chan struct{})
		for i := range int64(writers) {
			wg.Go(func() {
				<-all
				err := s.PutHead(ctx, store.Head{V: 1, Version: version + 1, Session: "s", Seq: i + 1})
				if err == nil && !winner.CompareAndSwap(0, i+1) {
					t.Errorf("version %d was written twice", version+1)
				} else if err != nil && !errors.Is(err, agent.Stale) {
					t.Error(err)
				}
			})
		}
		close(all)
		wg.Wait()
		h, err := s.Head(ctx, "s")
		require.NoError(t, err)
		require.Equal(t, store.Head{V: 1, Version: version + 1, Session: "s", Seq: winner.Load()}, h)
	}
}

// sessionNames are names, in order, of which a store might make one or none.
var sessionNames = []string{
	"..", "1", "A", "CON", "a", "a%", "a.b", "a/b-1", "a:b", "a_", strings.Repeat("a", 99), strings.Repeat("a", 100),
	"con", strings.Repeat("x", 100) + "/y-1/z-2", "x/y-1", "x/y-1/z-2", "x/y-10", "x:y", "xy", strings.Repeat("z", 100), "ä",
}

func anyName(t testing.TB, s store.Store) {
	for i, name := range sessionNames {
		require.NoError(t, s.PutHead(t.Context(), store.Head{V: 1, Version: 1, Session: name, Seq: int64(i)}))
	}
	for i, name := range sessionNames {
		h, err := s.Head(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, store.Head{V: 1, Version: 1, Session: name, Seq: int64(i)}, h)
	}
}

// listedSessions lists the names of the sessions that begin with a prefix.
func listedSessions(t testing.TB, s store.Store, prefix string) []string {
	t.Helper()
	var all []string
	for h, err := range s.Heads(t.Context(), prefix) {
		require.NoError(t, err)
		all = append(all, h.Session)
	}
	return all
}

func headsAreListed(t testing.TB, s store.Store) {
	require.Empty(t, listedSessions(t, s, ""))
	var want []string
	for i := range 600 { // more than a store would read at once
		want = append(want, fmt.Sprintf("many-%04d", i))
	}
	want = append(want, sessionNames...)
	for _, name := range want {
		require.NoError(t, s.PutHead(t.Context(), store.Head{V: 1, Version: 1, Session: name, Agent: "greeter"}))
	}
	slices.Sort(want)
	require.Equal(t, want, listedSessions(t, s, ""))
	for _, prefix := range []string{"many-00", "x/", "a%", "a_", "x/y-1/", strings.Repeat("a", 99), strings.Repeat("x", 100) + "/", "none", "ä"} {
		var some []string
		for _, name := range want {
			if strings.HasPrefix(name, prefix) {
				some = append(some, name)
			}
		}
		require.Equal(t, some, listedSessions(t, s, prefix), "prefix %q", prefix)
	}
	for h, err := range s.Heads(t.Context(), "a:") {
		require.NoError(t, err)
		require.Equal(t, store.Head{V: 1, Version: 1, Session: "a:b", Agent: "greeter"}, h)
		break // who has seen enough may leave
	}
}

func onlyTheSeenHeadIsDeleted(t testing.TB, s store.Store) {
	ctx := t.Context()
	long := strings.Repeat("x", 100) + "/y-1"
	for _, name := range []string{"s", long} {
		require.NoError(t, s.DeleteHead(ctx, name, 1), "one that is not there is gone")
		for version := range int64(2) {
			require.NoError(t, s.PutHead(ctx, store.Head{V: 1, Version: version + 1, Session: name}))
		}
		require.ErrorIs(t, s.DeleteHead(ctx, name, 1), agent.Stale)
		_, err := s.Head(ctx, name)
		require.NoError(t, err)
		require.NoError(t, s.DeleteHead(ctx, name, 2))
		_, err = s.Head(ctx, name)
		require.ErrorIs(t, err, agent.NotFound)
		require.Empty(t, listedSessions(t, s, name))
		require.ErrorIs(t, s.PutHead(ctx, store.Head{V: 1, Version: 3, Session: name}), agent.Stale, "a run that goes on finds nothing to go on from")
		require.NoError(t, s.PutHead(ctx, store.Head{V: 1, Version: 1, Session: name}), "a session may begin anew")
	}
}

func contextEndsAll(t testing.TB, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	head := store.Head{V: 1, Version: 1, Session: "s"}
	require.NoError(t, s.PutHead(ctx, head))
	require.NoError(t, s.PutChunk(ctx, numbered(1), []byte("x")))
	cancel()
	head.Version = 2
	for name, call := range map[string]func() error{
		"PutChunk":    func() error { return s.PutChunk(ctx, numbered(2), []byte("x")) },
		"Chunk":       func() error { _, err := s.Chunk(ctx, numbered(1)); return err },
		"Chunks":      func() error { return lastError(s.Chunks(ctx)) },
		"DeleteChunk": func() error { _, err := s.DeleteChunk(ctx, numbered(1), time.Now().Add(time.Hour)); return err },
		"Head":        func() error { _, err := s.Head(ctx, "s"); return err },
		"PutHead":     func() error { return s.PutHead(ctx, head) },
		"Heads":       func() error { return lastError(s.Heads(ctx, "")) },
		"DeleteHead":  func() error { return s.DeleteHead(ctx, "s", 1) },
	} {
		require.ErrorIs(t, call(), agent.StoreUnavailable, name)
	}
	require.Equal(t, []string{"s"}, listedSessions(t, s, ""), "nothing was changed")
	require.Len(t, listedChunks(t, s), 1)
}

// lastError is the error that a list ends with; nil where it ends well.
func lastError[T any](list func(func(T, error) bool)) (err error) {
	for _, err = range list {
	}
	return err
}
