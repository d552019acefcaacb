package store

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// say writes one more chunk of a session, and its head, and returns its digest.
func say(t *testing.T, s Store, session string, texts ...string) string {
	t.Helper()
	h, err := s.Head(t.Context(), session)
	if err != nil {
		require.ErrorIs(t, err, agent.NotFound)
		h = Head{V: 1, Session: session, Version: h.Version, Fence: h.Fence}
	}
	digest, err := NewLog(s).Seal(t.Context(), h.Digest, session, "r", false, events(h.Seq+1, texts...))
	require.NoError(t, err)
	h.Version, h.Digest, h.Seq = h.Version+1, digest, h.Seq+int64(len(texts))
	require.NoError(t, s.PutHead(t.Context(), h))
	return digest
}

// fork begins a session where another's head is.
func fork(t *testing.T, s Store, from, to string) {
	t.Helper()
	h, err := s.Head(t.Context(), from)
	require.NoError(t, err)
	h.Session, h.Version = to, 1
	require.NoError(t, s.PutHead(t.Context(), h))
}

// said is all that was said in a session, read anew.
func said(t *testing.T, s Store, session string) []string {
	t.Helper()
	h, err := s.Head(t.Context(), session)
	require.NoError(t, err)
	v, err := NewLog(s).View(t.Context(), h.Digest)
	require.NoError(t, err)
	return texts(v)
}

// age makes all chunks of a folder an hour older.
func age(t *testing.T, d *Dir) {
	t.Helper()
	for c, err := range d.Chunks(t.Context()) {
		require.NoError(t, err)
		then := c.Put.Add(-time.Hour)
		require.NoError(t, os.Chtimes(d.chunk(c.Digest), then, then))
	}
}

func digests(t *testing.T, s Store) (all []string) {
	t.Helper()
	for c, err := range s.Chunks(t.Context()) {
		require.NoError(t, err)
		all = append(all, c.Digest)
	}
	return all
}

func TestWhatNoSessionNeedsIsCollected(t *testing.T) {
	ctx, d := t.Context(), open1(t)
	l := NewLog(d)
	first := say(t, d, "s", "a")
	say(t, d, "s", "b")
	lost, err := l.Seal(ctx, first, "s", "r2", false, events(2, "never a head"))
	require.NoError(t, err)
	age(t, d)
	young, err := l.Seal(ctx, first, "s", "r3", false, events(2, "soon a head"))
	require.NoError(t, err)
	require.NoError(t, d.PutChunk(ctx, "none", []byte("of no digest")))

	want := Collected{Sessions: 1, Chunks: 5, Deleted: 1, Young: 2}
	for _, dry := range []bool{true, false} {
		done, err := l.Collect(ctx, time.Minute, dry)
		require.NoError(t, err)
		require.Positive(t, done.Bytes)
		done.Bytes = 0
		require.Equal(t, want, done)
		require.Equal(t, dry, has(t, d, lost))
	}
	require.True(t, has(t, d, young))
	require.Equal(t, []string{"a", "b"}, said(t, d, "s"))
	done, err := l.Collect(ctx, 0, false)
	require.NoError(t, err)
	require.Equal(t, 2, done.Deleted)
	require.Equal(t, []string{"a", "b"}, said(t, d, "s"))
	_, err = l.Collect(ctx, -time.Second, false)
	require.ErrorIs(t, err, agent.InvalidInput)
}

func has(t *testing.T, s Store, digest string) bool {
	t.Helper()
	_, err := s.Chunk(t.Context(), digest)
	if err != nil {
		require.ErrorIs(t, err, agent.ChunkMissing)
	}
	return err == nil
}

// hooked is a store where something happens in the middle of a call.
type hooked struct {
	*Dir
	afterHead    func(h Head)         // in a list
	beforeDelete func(session string) // of a head
	afterChunk   func(digest string)
	keep         bool // no chunk is deleted
}

func (h *hooked) Heads(ctx context.Context, prefix string) iter.Seq2[Head, error] {
	return func(yield func(Head, error) bool) {
		for head, err := range h.Dir.Heads(ctx, prefix) {
			if !yield(head, err) {
				return
			}
			if h.afterHead != nil {
				h.afterHead(head)
			}
		}
	}
}

func (h *hooked) DeleteHead(ctx context.Context, session string, version int64) error {
	if h.beforeDelete != nil {
		h.beforeDelete(session)
	}
	return h.Dir.DeleteHead(ctx, session, version)
}

func (h *hooked) Chunk(ctx context.Context, digest string) ([]byte, error) {
	data, err := h.Dir.Chunk(ctx, digest)
	if h.afterChunk != nil {
		h.afterChunk(digest)
	}
	return data, err
}

func (h *hooked) DeleteChunk(ctx context.Context, digest string, before time.Time) (bool, error) {
	if h.keep {
		return true, nil
	}
	return h.Dir.DeleteChunk(ctx, digest, before)
}

func TestWhatChangesHandsIsNotCollected(t *testing.T) {
	ctx, d := t.Context(), open1(t)
	say(t, d, "b", "b")
	say(t, d, "z", "a")
	say(t, d, "z", "z")
	age(t, d)
	moved := false
	l := NewLog(&hooked{Dir: d, afterHead: func(h Head) {
		if h.Session != "b" || moved {
			return
		}
		moved = true // b was seen, z was not
		from, err := d.Head(ctx, "z")
		require.NoError(t, err)
		require.NoError(t, d.PutHead(ctx, Head{V: 1, Session: "b", Version: 2, Digest: from.Digest, Seq: 2}))
		require.NoError(t, d.DeleteHead(ctx, "z", from.Version))
	}})
	done, err := l.Collect(ctx, 0, false)
	require.NoError(t, err)
	require.True(t, moved)
	require.Zero(t, done.Deleted)
	require.Equal(t, []string{"a", "z"}, said(t, d, "b"))
	done, err = l.Collect(ctx, 0, false)
	require.NoError(t, err)
	require.Equal(t, 1, done.Deleted, "what b had before")
}

func TestASessionThatIsDeletedMeanwhileIsNoFault(t *testing.T) {
	ctx, d := t.Context(), open1(t)
	say(t, d, "a", "1")
	say(t, d, "a", "2")
	gone := false
	l := NewLog(&hooked{Dir: d, afterChunk: func(string) {
		if !gone { // between the chunks of a
			gone = true
			_, err := NewLog(d).Delete(ctx, "a")
			require.NoError(t, err)
		}
	}})
	found, err := l.Check(ctx)
	require.NoError(t, err)
	require.True(t, gone)
	require.Empty(t, found.Faults)
}

// Faults of every kind: nothing is collected, and all are found.
func TestNothingIsCollectedBesideWhatCanNotBeRead(t *testing.T) {
	long := strings.Repeat("x", 100) + "/y-1"
	damage := func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) }
	for name, fault := range map[string]struct {
		make func(d *Dir, chunk string) error
		want Fault
	}{
		"missing":      {func(d *Dir, chunk string) error { return os.Remove(d.chunk(chunk)) }, Fault{Session: "s", Chunk: "CHUNK", Code: agent.ChunkMissing}},
		"damaged":      {func(d *Dir, chunk string) error { return damage(d.chunk(chunk)) }, Fault{Session: "s", Chunk: "CHUNK", Code: agent.ChunkDamaged}},
		"head":         {func(d *Dir, _ string) error { return damage(d.head("s")) }, Fault{Session: "s", Code: agent.ChunkDamaged}},
		"unnamed head": {func(d *Dir, _ string) error { return damage(d.head(long)) }, Fault{Code: agent.ChunkDamaged}},
		"newer": {func(d *Dir, _ string) error {
			return d.PutHead(context.Background(), Head{V: agent.Version + 1, Version: 3, Session: "s"})
		}, Fault{Session: "s", Code: agent.Incompatible}},
	} {
		t.Run(name, func(t *testing.T) {
			d := open1(t)
			first := say(t, d, "s", "a")
			say(t, d, "s", "b")
			say(t, d, long, "l")
			say(t, d, "whole", "w")
			_, err := NewLog(d).Seal(t.Context(), "", "s", "r", false, events(1, "no session needs this"))
			require.NoError(t, err)
			age(t, d)
			require.NoError(t, fault.make(d, first))
			before := digests(t, d)

			found, err := NewLog(d).Check(t.Context())
			require.NoError(t, err)
			require.Equal(t, 3, found.Sessions)
			require.Len(t, found.Faults, 1)
			got := found.Faults[0]
			require.NotEmpty(t, got.Message)
			got.Message = ""
			if fault.want.Chunk != "" {
				fault.want.Chunk = first
			}
			require.Equal(t, fault.want, got)

			done, err := NewLog(d).Collect(t.Context(), 0, false)
			require.ErrorIs(t, err, fault.want.Code)
			require.Contains(t, err.Error(), "no chunk was deleted")
			require.Equal(t, found.Faults, done.Faults)
			require.Zero(t, done.Deleted)

			_, err = NewLog(d).Delete(t.Context(), "whole")
			require.ErrorIs(t, err, fault.want.Code, "it may share chunks with what can't be read")
			require.Equal(t, before, digests(t, d))
			require.Equal(t, []string{"w"}, said(t, d, "whole"))
		})
	}
}

func TestAChainIsFollowedWithoutItsEvents(t *testing.T) {
	for _, session := range []string{"s", "a:b", `x","events":[`, "ä\u2028"} {
		d := open1(t)
		first := say(t, d, session, `,"events":[{"prev":"no"}]`)
		second := say(t, d, session, `"prev":"no"`)
		data, err := d.Chunk(t.Context(), second)
		require.NoError(t, err)
		prev, err := link(second, data)
		require.NoError(t, err)
		require.Equal(t, first, prev)
	}
	for name, plain := range map[string]string{
		"two":    `{"v":1,"session":"s","run":"r","prev":"a","events":[],"prev":"b"}`,
		"late":   `{"v":1,"session":"s","run":"r","events":[],"prev":"b"}`,
		"hidden": `{"v":1,"session":"s","run":"r","x":{"y":1,"events":[]},"prev":"b","events":[]}`,
	} {
		planted := digestOf([]byte(plain))
		_, _, err := open(planted, packer().EncodeAll([]byte(plain), nil))
		require.ErrorIs(t, err, agent.ChunkDamaged, name)
	}
	newer, data, _, err := seal(Chunk{V: agent.Version + 1, Session: "s"})
	require.NoError(t, err)
	_, err = link(newer, data)
	require.ErrorIs(t, err, agent.Incompatible)
}

func TestCheckCountsSharedChunksOnce(t *testing.T) {
	d := open1(t)
	for i := range 5 {
		say(t, d, "a", fmt.Sprint(i))
	}
	fork(t, d, "a", "b")
	say(t, d, "b", "more")
	found, err := NewLog(d).Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, Checked{Sessions: 2, Chunks: 6}, found)
}
