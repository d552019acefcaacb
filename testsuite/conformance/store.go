package conformance

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
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

// Store tests a store against the contract of [store.Store]. It calls open for each part;
// open returns an empty store, and closes it when t ends.
func Store(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	for _, part := range storeParts {
		t.Run(part.name, func(t *testing.T) { part.check(t, open(t)) })
	}
}

// storePart is a rule for stores, and its check.
type storePart struct {
	name  string
	check func(testing.TB, store.Store)
}

var storeParts = []storePart{
	{"a store has one identity", storeHasOneIdentity},
	{"a store belongs to one namespace", storeHasOneNamespace},
	{"a chunk is what was put", chunkIsWhatWasPut},
	{"a chunk is whole or not there", chunkIsWhole},
	{"chunks are listed and renewed", chunksAreListed},
	{"only old chunks are deleted", onlyOldChunksAreDeleted},
	{"a chunk that is put is there", chunkThatIsPutIsThere},
	{"a head is kept whole", headIsKeptWhole},
	{"a head is whole while it is written", headIsWhole},
	{"a head is saved once", headIsSavedOnce},
	{"one of many writers of a head wins", oneWriterWins},
	{"a lower fence is refused", lowerFenceIsRefused},
	{"a late twin writer changes nothing", lateTwinChangesNothing},
	{"sessions of any name have heads of their own", anyName},
	{"heads are listed", headsAreListed},
	{"a memory loses no change", memoryLosesNothing},
	{"a memory is its owner's", memoryIsItsOwners},
	{"only the head that was seen is deleted", onlyTheSeenHeadIsDeleted},
	{"a deletion that is cut short goes on", deletionGoesOn},
	{"a session that begins anew outlives the deletion of the old one", newSessionOutlivesDeletion},
	{"a store is used while it is listed", listsDoNotBlock},
	{"data belongs to the caller", memoryIsTheCallers},
	{"an ended context ends every call", contextEndsAll},
}

// numbered returns the name of a chunk for a number.
func numbered(n int) string {
	sum := sha256.Sum256([]byte{byte(n >> 8), byte(n)})
	return fmt.Sprintf("%x-%x", sum[:16], sum)
}

func chunkIsWhatWasPut(t testing.TB, s store.Store) {
	ctx := t.Context()
	_, err := s.Chunk(ctx, numbered(1))
	require.ErrorIs(t, err, agent.CodeChunkMissing, "the error of a chunk that is not there")
	_, startErr := s.ChunkStart(ctx, numbered(1), 10)
	require.ErrorIs(t, startErr, agent.CodeChunkMissing, "the error of the start of a chunk that is not there")
	require.Contains(t, err.Error(), numbered(1), "people need the digest to look for the chunk")

	// More than a backend may store in one piece.
	large := make([]byte, 2<<20)
	// A fixed seed: a failure must come back.
	random := rand.New(rand.NewPCG(1, 2))
	for i := range large {
		large[i] = byte(random.Uint32())
	}
	for n, data := range [][]byte{[]byte("a\x00b"), {}, large} {
		for range 2 { // the second time is no error
			require.NoError(t, s.PutChunk(ctx, numbered(n), data), "a chunk of %d bytes", len(data))
			got, err := s.Chunk(ctx, numbered(n))
			require.NoError(t, err, "a chunk of %d bytes that was put", len(data))
			require.True(t, slices.Equal(data, got), "%d bytes came back as %d", len(data), len(got))
			for _, most := range []int{0, 2, len(data), len(data) + 1} {
				start, err := s.ChunkStart(ctx, numbered(n), most)
				require.NoError(t, err, "the first %d bytes of a chunk of %d", most, len(data))
				require.True(t, slices.Equal(data[:min(len(data), most)], start), "the first %d bytes of a chunk of %d came back as %d", most, len(data), len(start))
			}
		}
	}
}

// listedChunks returns all chunks.
func listedChunks(t testing.TB, s store.Store) []store.ChunkInfo {
	t.Helper()
	var all []store.ChunkInfo
	for c, err := range s.Chunks(t.Context(), "") {
		require.NoError(t, err, "listing the chunks, after %d of them", len(all))
		all = append(all, c)
	}
	return all
}

// many is more than a store, or its backend, lists at once.
const many = 1050

// sameList compares a list with what has to be listed, and says what is wrong.
func sameList(t testing.TB, want, got []string, of string) {
	t.Helper()
	counts := map[string]int{}
	for _, name := range got {
		counts[name]++
	}
	for _, name := range want {
		require.NotZero(t, counts[name], "%s: %s is not listed, and %d of %d are: a chunk or session that is not listed counts as deleted", of, name, len(got), len(want))
		require.Equal(t, 1, counts[name], "%s: %s is listed so many times", of, name)
		delete(counts, name)
	}
	require.Empty(t, counts, "%s: these are listed and should not be", of)
	for i, name := range want {
		require.Equal(t, name, got[i], "%s: the list is not in the order of bytes, at place %d", of, i)
	}
}

// leavesEarly checks that a caller may stop a list early.
func leavesEarly[T any](t testing.TB, list iter.Seq2[T, error], of string) {
	t.Helper()
	require.NoError(t, panicked(func() {
		for range list {
			break
		}
	}), "%s: the caller has left, but the list continued: end it when yield returns false", of)
}

func chunksAreListed(t testing.TB, s store.Store) {
	require.Empty(t, listedChunks(t, s), "the chunks of an empty store")
	var want []string
	for n := range many {
		want = append(want, numbered(n))
		require.NoError(t, s.PutChunk(t.Context(), numbered(n), make([]byte, n%7)), "putting %d chunks", many)
	}
	slices.Sort(want)
	before := listedChunks(t, s)
	var got []string
	for _, c := range before {
		got = append(got, c.Name)
		require.WithinDuration(t, time.Now(), c.Put, time.Minute, "when chunk %s was put", c.Name)
	}
	sameList(t, want, got, "chunks")
	for _, prefix := range []string{want[0], want[many/2][:2], want[many/2][:32] + "-", want[1] + "x", "zz"} {
		var some, listed []string
		for _, name := range want {
			if strings.HasPrefix(name, prefix) {
				some = append(some, name)
			}
		}
		for c, err := range s.Chunks(t.Context(), prefix) {
			require.NoError(t, err)
			listed = append(listed, c.Name)
		}
		sameList(t, some, listed, fmt.Sprintf("chunks with the prefix %q", prefix))
	}
	leavesEarly(t, s.Chunks(t.Context(), ""), "chunks")

	again := before[many/2]
	require.NoError(t, s.PutChunk(t.Context(), again.Name, make([]byte, again.Size)), "putting a chunk again")
	after := listedChunks(t, s)
	require.Equal(t, many, len(after), "how many chunks are listed after one of them was put again")
	// Only the chunk that was put again may be renewed.
	for i, c := range after {
		if i == many/2 {
			require.True(t, c.Put.After(again.Put), "a chunk that was put at %s and again has the time %s: putting it again must renew it, or garbage collection deletes it before its writer refers to it (do not round times down)", again.Put, c.Put)
			c.Put = again.Put
		}
		require.True(t, c.Put.Equal(before[i].Put), "another chunk was renewed by a put: %s was put at %s and has the time %s", c.Name, before[i].Put, c.Put)
		require.Equal(t, before[i].Size, c.Size, "the size of chunk %s has changed", c.Name)
	}
}

func onlyOldChunksAreDeleted(t testing.TB, s store.Store) {
	ctx := t.Context()
	for n := range 3 {
		require.NoError(t, s.PutChunk(ctx, numbered(n), []byte("x")))
	}
	put := listedChunks(t, s)
	require.Len(t, put, 3, "the chunks that were put")
	gone, err := s.DeleteChunk(ctx, put[0].Name, put[0].Put)
	require.NoError(t, err)
	require.False(t, gone, "DeleteChunk reports a deletion for a chunk that was put exactly at the given time: only chunks that were put before it may be deleted")
	require.Len(t, listedChunks(t, s), 3, "a chunk that was put exactly at the given time was deleted")
	for range 2 { // deleting again is no error
		gone, err = s.DeleteChunk(ctx, put[0].Name, put[0].Put.Add(time.Second))
		require.NoError(t, err, "deleting an old chunk, and again when it is gone")
		require.True(t, gone, "DeleteChunk must report that an old chunk, or a missing one, is gone")
	}
	_, err = s.Chunk(ctx, put[0].Name)
	require.ErrorIs(t, err, agent.CodeChunkMissing, "a chunk that DeleteChunk said is gone")
	require.Equal(t, put[1:], listedChunks(t, s), "the chunks that were not deleted")
	require.NoError(t, s.PutChunk(ctx, put[0].Name, []byte("x")), "a chunk that was deleted may be put again")
	require.Len(t, listedChunks(t, s), 3, "a chunk that was deleted and put again")
}

// chunkThatIsPutIsThere deletes an old chunk while it is put again. Whichever comes
// first, the chunk must exist in the end.
func chunkThatIsPutIsThere(t testing.TB, s store.Store) {
	const rounds, each = 100, 4
	ctx := t.Context()
	for round := range rounds {
		require.NoError(t, s.PutChunk(ctx, numbered(1), []byte("x")))
		listed := listedChunks(t, s)
		require.Len(t, listed, 1, "the one chunk that was put, after %d rounds of putting and deleting it", round)
		// The smallest step after the put: the chunk counts as old, and a put in this round is
		// later.
		before := listed[0].Put.Add(time.Microsecond)
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
		require.NoError(t, err, "round %d: a chunk was put and deleted as an old one at the same time, and is gone: its writer refers to it", round+1)
	}
}

func oneWriterWins(t testing.TB, s store.Store) {
	const writers, versions = 50, 3
	ctx := t.Context()
	_, err := s.Head(ctx, "s")
	require.ErrorIs(t, err, agent.CodeNotFound, "the head of a session that has none")
	require.ErrorIs(t, s.PutHead(ctx, store.Head{V: 1, Version: 2, Session: "s"}), agent.CodeStale, "the first version of a head is 1, and 2 was taken")
	for version := range int64(versions) {
		var winner atomic.Int64
		var wg sync.WaitGroup
		all := make(chan struct{})
		for i := range int64(writers) {
			wg.Go(func() {
				<-all
				// Seq names the writer, so the stored head shows which one has won.
				err := s.PutHead(ctx, store.Head{V: 1, Version: version + 1, Session: "s", Seq: i + 1})
				if err == nil && !winner.CompareAndSwap(0, i+1) {
					t.Errorf("version %d was written twice", version+1)
				} else if err != nil && !errors.Is(err, agent.CodeStale) {
					t.Error(err)
				}
			})
		}
		// All writers wait for this, so they start at the same time.
		close(all)
		wg.Wait()
		h, err := s.Head(ctx, "s")
		require.NoError(t, err)
		require.Equal(t, store.Head{V: 1, Version: version + 1, Session: "s", Seq: winner.Load()}, h, "the head does not come from the writer that got no error")
	}
}

// longest is the name of a very deep child, as long as names can be, except for its end.
var longest = strings.Repeat("q", 100) + strings.Repeat("/clerk-1", 18) + "/abcdefgh-"

// sessionNames are names that a store might confuse or lose.
var sessionNames = []string{
	"..", "1", "A", "CON", "a", "a%", "a-b-1", "a.", "a.b", "a.b-1", "a/b-1", "a:b", "a:b-1", "a_", "a_b-1", strings.Repeat("a", 99), strings.Repeat("a", 100),
	longest + "1", longest + "2",
	"con", strings.Repeat("x", 100) + "/y-1/z-2", "x/y-1", "x/y-1/z-2", "x/y-10", "x:y", "xy", strings.Repeat("z", 100), "ä",
}

func anyName(t testing.TB, s store.Store) {
	for i, name := range sessionNames {
		require.NoError(t, s.PutHead(t.Context(), store.Head{V: 1, Version: 1, Session: name, Seq: int64(i)}),
			"the first head of session %q, of %d bytes; if it is stale, another session has its place: do not cut, fold or change names", name, len(name))
	}
	for i, name := range sessionNames {
		h, err := s.Head(t.Context(), name)
		require.NoError(t, err, "the head of session %q", name)
		require.Equal(t, store.Head{V: 1, Version: 1, Session: name, Seq: int64(i)}, h, "session %q has another's head", name)
	}
}

// listedSessions returns the names of the sessions that begin with a prefix.
func listedSessions(t testing.TB, s store.Store, prefix string) []string {
	t.Helper()
	var all []string
	for h, err := range s.Heads(t.Context(), prefix) {
		require.NoError(t, err, "listing the heads of %q, after %d of them", prefix, len(all))
		all = append(all, h.Session)
	}
	return all
}

func headsAreListed(t testing.TB, s store.Store) {
	require.Empty(t, listedSessions(t, s, ""), "the heads of an empty store")
	var want []string
	for i := range many {
		want = append(want, fmt.Sprintf("many-%04d", i))
	}
	want = append(want, sessionNames...)
	for _, name := range want {
		require.NoError(t, s.PutHead(t.Context(), store.Head{V: 1, Version: 1, Session: name, Agent: "greeter"}), "the head of session %q", name)
	}
	slices.Sort(want)
	sameList(t, want, listedSessions(t, s, ""), "heads")
	// Also prefixes with a meaning in SQL or file systems, and ones that differ only in case.
	for _, prefix := range []string{"many-00", "x/", "a%", "a_", "con", "CO", "X/", "x/y-1/", longest, strings.Repeat("a", 99), strings.Repeat("x", 100) + "/", "none", "ä"} {
		var some []string
		for _, name := range want {
			if strings.HasPrefix(name, prefix) {
				some = append(some, name)
			}
		}
		sameList(t, some, listedSessions(t, s, prefix), fmt.Sprintf("heads with the prefix %q, byte by byte", prefix))
	}
	for h, err := range s.Heads(t.Context(), "a:") {
		require.NoError(t, err, "listing the heads of %q", "a:")
		require.Equal(t, store.Head{V: 1, Version: 1, Session: h.Session, Agent: "greeter"}, h, "a head that is listed is not the one that was put")
	}
	leavesEarly(t, s.Heads(t.Context(), ""), "heads")
}

func onlyTheSeenHeadIsDeleted(t testing.TB, s store.Store) {
	ctx := t.Context()
	long := strings.Repeat("x", 100) + "/y-1"
	for _, name := range []string{"s", long} {
		require.NoError(t, s.DeleteHead(ctx, name, 1), "deleting a head that is not there")
		for version := range int64(2) {
			require.NoError(t, s.PutHead(ctx, store.Head{V: 1, Version: version + 1, Session: name, Fence: agent.Fence{Chain: 7, N: version + 1, By: "b"}}))
		}
		require.ErrorIs(t, s.DeleteHead(ctx, name, 1), agent.CodeStale, "deleting a head by an old version")
		_, err := s.Head(ctx, name)
		require.NoError(t, err, "the head was deleted by a caller that had not seen its last version: a live run loses its session")
		require.NoError(t, s.DeleteHead(ctx, name, 2), "deleting a head by its version")
		_, err = s.Head(ctx, name)
		require.ErrorIs(t, err, agent.CodeNotFound, "a head that was deleted")
		require.Empty(t, listedSessions(t, s, name), "a head that was deleted is listed")
		// Beside the error, the head has what a later run needs to count on.
		left, err := s.Head(ctx, name)
		require.ErrorIs(t, err, agent.CodeNotFound)
		require.Equal(t, store.Head{Version: 3, Session: name, Fence: agent.Fence{Chain: 7, N: 2, By: "b"}}, left, "beside NotFound, a deleted session keeps its fence and its next version: no version is used twice")
		for version := range int64(3) {
			require.ErrorIs(t, s.PutHead(ctx, store.Head{V: 1, Version: version + 1, Session: name, Fence: agent.Fence{Chain: 8}}), agent.CodeStale, "version %d of a head that was deleted: a late write restores it, or a run continues without its log", version+1)
		}
		require.ErrorIs(t, s.PutHead(ctx, store.Head{V: 1, Version: 4, Session: name, Fence: agent.Fence{Chain: 7, N: 1}}), agent.CodeStale, "a lower fence than a session had when it was deleted")
		require.NoError(t, s.PutHead(ctx, store.Head{V: 1, Version: 4, Session: name, Fence: agent.Fence{Chain: 8}}), "a session that was deleted may start again")
		require.ErrorIs(t, s.DeleteHead(ctx, name, 2), agent.CodeStale, "a late deletion of the earlier session")
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
		"ChunkStart":  func() error { _, err := s.ChunkStart(ctx, numbered(1), 1); return err },
		"Chunks":      func() error { return lastError(s.Chunks(ctx, "")) },
		"DeleteChunk": func() error { _, err := s.DeleteChunk(ctx, numbered(1), time.Now().Add(time.Hour)); return err },
		"Head":        func() error { _, err := s.Head(ctx, "s"); return err },
		"PutHead":     func() error { return s.PutHead(ctx, head) },
		"Heads":       func() error { return lastError(s.Heads(ctx, "")) },
		"PutIfAbsent": func() error { _, err := s.PutIfAbsent(ctx, "id", "x"); return err },
		"DeleteHead":  func() error { return s.DeleteHead(ctx, "s", 1) },
	} {
		require.ErrorIs(t, call(), agent.CodeStoreUnavailable, "%s with an ended context", name)
	}
	require.Equal(t, []string{"s"}, listedSessions(t, s, ""), "heads were changed although the context had ended")
	require.Len(t, listedChunks(t, s), 1, "chunks were changed although the context had ended")
}

// lastError returns the error at the end of a list; nil if there is none.
func lastError[T any](list func(func(T, error) bool)) (err error) {
	for _, err = range list {
	}
	return err
}
