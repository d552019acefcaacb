package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// wholeHead returns a head with a value in every field, also in fields that are new.
func wholeHead(session string) store.Head {
	h := store.Head{}
	const deep = 8
	fill(reflect.ValueOf(&h).Elem(), deep)
	h.V, h.Version, h.Session = 1, 1, session
	return h
}

// fill sets every field, down to a depth.
func fill(v reflect.Value, depth int) {
	const someNumber = 1 << 20
	switch {
	case depth == 0 || !v.CanSet():
	// Microseconds, because databases round finer times.
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 11, 21, 8, 30, 15, 123456000, time.UTC)))
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"n":1}`))
	case v.Kind() == reflect.String:
		v.SetString("ä \"word\"")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		// Not small, so a field that is too narrow shows.
		v.SetInt(someNumber)
	case v.CanUint():
		v.SetUint(someNumber)
	case v.CanFloat():
		v.SetFloat(0.5)
	case v.Kind() == reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, depth-1)
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth-1)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), depth-1)
		fill(v.Index(1), depth-1)
	case v.Kind() == reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth-1)
		fill(value, depth-1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	}
}

// sameHead compares heads. A time may come back in another zone.
func sameHead(t testing.TB, want, got store.Head, how string) {
	t.Helper()
	want.Updated, got.Updated = want.Updated.UTC(), got.Updated.UTC()
	require.Equal(t, asJSON(want), asJSON(got), how)
}

func headIsKeptWhole(t testing.TB, s store.Store) {
	want := wholeHead("s")
	require.NoError(t, s.PutHead(t.Context(), want))
	got, err := s.Head(t.Context(), "s")
	require.NoError(t, err)
	sameHead(t, want, got, "the store dropped a field, so a run continues without it")
	for h, err := range s.Heads(t.Context(), "s") {
		require.NoError(t, err)
		sameHead(t, want, h, "a head that is listed")
	}
	next := store.Head{V: 1, Version: 2, Session: "s", Fence: want.Fence}
	require.NoError(t, s.PutHead(t.Context(), next))
	got, err = s.Head(t.Context(), "s")
	require.NoError(t, err)
	sameHead(t, next, got, "nothing of the old head may be left: a head is replaced, not merged")
}

// versionText is the content of a version of a head. It is long, and says who wrote it.
func versionText(version, writer int64) string {
	const long = 2000
	return strings.Repeat(fmt.Sprintf("version %d by %d ", version, writer), long)
}

// headIsWhole reads a head while many write it.
func headIsWhole(t testing.TB, s store.Store) {
	const writers, versions = 4, 20
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for writer := range int64(writers) {
		wg.Go(func() {
			for version := int64(1); version <= versions; version++ {
				err := s.PutHead(ctx, store.Head{V: 1, Version: version, Session: "s", Seq: writer, Run: versionText(version, writer)})
				if ctx.Err() == nil && err != nil && !errors.Is(err, agent.CodeStale) {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wg.Wait()
	}()
	defer func() {
		cancel()
		<-done
	}()
	seen := int64(0)
	whole := func(h store.Head, err error) {
		// Times and places may differ, so only what a half write would mix is compared.
		require.NoError(t, err, "reading a head while it is written, after version %d", seen)
		require.True(t, h.Run == versionText(h.Version, h.Seq), "a head that was read while it was written is half of one version and half of another: a run would continue from a state that never existed")
		require.GreaterOrEqual(t, h.Version, seen, "a head that was read while it was written has become older")
		seen = h.Version
	}
	for writing := true; writing; {
		select {
		case <-done:
			writing = false
		default:
		}
		// Before the first write there is no head yet.
		if h, err := s.Head(t.Context(), "s"); seen > 0 || !errors.Is(err, agent.CodeNotFound) {
			whole(h, err)
		}
		for h, err := range s.Heads(t.Context(), "s") {
			whole(h, err)
		}
	}
	require.Equal(t, int64(versions), seen, "the last version of a head that %d wrote", writers)
}

// headIsSavedOnce writes versions again, as a retried activity does, or a run that was
// thought to be dead.
func headIsSavedOnce(t testing.TB, s store.Store) {
	ctx := t.Context()
	heads := func() []string { return listedSessions(t, s, "") }
	for version := range int64(3) {
		h := store.Head{V: 1, Version: version + 1, Session: "s", Seq: version}
		require.NoError(t, s.PutHead(ctx, h))
		require.ErrorIs(t, s.PutHead(ctx, h), agent.CodeStale, "the same version is saved twice: two runs believe that they own the session")
		h.Seq = 99
		require.ErrorIs(t, s.PutHead(ctx, h), agent.CodeStale, "a version is saved over: the first writer's data is lost")
		h.Version = version + 3
		require.ErrorIs(t, s.PutHead(ctx, h), agent.CodeStale, "a version is left out")
		h.Version = version
		require.ErrorIs(t, s.PutHead(ctx, h), agent.CodeStale, "an older version is saved over a newer one")
		got, err := s.Head(ctx, "s")
		require.NoError(t, err)
		sameHead(t, store.Head{V: 1, Version: version + 1, Session: "s", Seq: version}, got, "a refused write has changed something")
		require.Equal(t, []string{"s"}, heads(), "a session is listed once, however often it was saved")
	}
}

// memoryIsTheCallers changes data after putting it, and data that it got.
func memoryIsTheCallers(t testing.TB, s store.Store) {
	ctx := t.Context()
	data, want := []byte("one two three"), []byte("one two three")
	require.NoError(t, s.PutChunk(ctx, numbered(1), data))
	clear(data)
	// Twice: the first result must not be the store's own memory.
	for range 2 {
		got, err := s.Chunk(ctx, numbered(1))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "a caller changed a stored chunk through its own memory")
		clear(got)
	}
	h := wholeHead("s")
	require.NoError(t, s.PutHead(ctx, h))
	clear(h.Receipts)
	for range 2 {
		got, err := s.Head(ctx, "s")
		require.NoError(t, err)
		sameHead(t, wholeHead("s"), got, "a caller changed a stored head through its own memory")
		clear(got.Receipts)
		for h, err := range s.Heads(ctx, "") {
			require.NoError(t, err)
			clear(h.Receipts)
		}
	}
}

// chunkIsWhole reads chunks while they are written, and after writes that were cancelled.
func chunkIsWhole(t testing.TB, s store.Store) {
	const rounds = 20
	// One MiB, so a reader can meet a half-written chunk.
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	whole := func(digest, how string) bool {
		got, err := s.Chunk(t.Context(), digest)
		if errors.Is(err, agent.CodeChunkMissing) {
			return false
		}
		require.NoError(t, err, how)
		require.True(t, bytes.Equal(data, got), "%s: %d of %d bytes: it counts as damaged, and its session is lost", how, len(got), len(data))
		return true
	}
	for n := range rounds {
		put := make(chan error, 1)
		go func() { put <- s.PutChunk(t.Context(), numbered(n), data) }()
		for !whole(numbered(n), "a chunk that is being put") {
			select {
			case err := <-put:
				require.NoError(t, err)
				// Put back, so the receive below has an error to read.
				require.True(t, whole(numbered(n), "a chunk that was put"), "a chunk that was put is not there")
				put <- nil
			default:
			}
		}
		require.NoError(t, <-put)
	}
	for n := range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		// The cancel races with the put; both orders are right.
		wg.Go(cancel)
		err := s.PutChunk(ctx, numbered(rounds+n), data)
		wg.Wait()
		there := whole(numbered(rounds+n), "a chunk whose writer has given up")
		require.True(t, there || err != nil, "a chunk that was put is not there")
		require.NoError(t, s.PutChunk(t.Context(), numbered(rounds+n), data))
		require.True(t, whole(numbered(rounds+n), "a chunk that was put after that"))
	}
}

// listsDoNotBlock uses the store during its lists, as a check of a store does.
func listsDoNotBlock(t testing.TB, s store.Store) {
	const few = 5
	ctx := t.Context()
	for n := range few {
		require.NoError(t, s.PutChunk(ctx, numbered(n), []byte("x")))
		require.NoError(t, s.PutHead(ctx, store.Head{V: 1, Version: 1, Session: fmt.Sprint("s", n)}))
	}
	var errs []error
	// In a goroutine, because a store that blocks itself would never return.
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c, err := range s.Chunks(ctx, "") {
			_, read := s.Chunk(ctx, c.Name)
			_, gone := s.DeleteChunk(ctx, c.Name, c.Put)
			errs = append(errs, err, read, gone, s.PutChunk(ctx, c.Name, []byte("x")))
		}
		for h, err := range s.Heads(ctx, "s") {
			_, read := s.Head(ctx, h.Session)
			h.Version = 2
			errs = append(errs, err, read, s.PutHead(ctx, h), s.DeleteHead(ctx, h.Session, 2))
		}
	}()
	select {
	case <-done:
		require.NoError(t, errors.Join(errs...), "the store while it is listed")
		require.GreaterOrEqual(t, len(slices.DeleteFunc(errs, func(err error) bool { return err != nil })), few*8, "some entries were not listed")
	case <-time.After(3 * promptTime):
		t.Fatalf("the store does not answer while it is listed: garbage is never collected")
	}
}
