package store

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync/atomic"
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
		require.ErrorIs(t, err, agent.CodeNotFound)
		h = Head{Session: session, Version: h.Version, Fence: h.Fence}
	}
	digest, err := NewLog(s).Seal(t.Context(), h.Digest, session, "r", false, events(h.Seq+1, texts...))
	require.NoError(t, err)
	h.V, h.Version, h.Digest, h.Seq = HeadVersion, h.Version+1, digest, h.Seq+int64(len(texts))
	h.Fence = agent.Fence{Chain: max(h.Fence.Chain, 1), N: h.Fence.N + 1}
	_, err = NewLog(s).PutHead(t.Context(), h)
	require.NoError(t, err)
	return digest
}

// fork begins a session where another's head is.
func fork(t *testing.T, s Store, from, to string) {
	t.Helper()
	h, err := s.Head(t.Context(), from)
	require.NoError(t, err)
	l := NewLog(s)
	require.NoError(t, l.Adopt(t.Context(), to, h.Digest, from))
	h.Session, h.Version, h.Recent = to, 1, nil
	_, err = l.PutHead(t.Context(), h)
	require.NoError(t, err)
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
	for c, err := range d.Chunks(t.Context(), "") {
		require.NoError(t, err)
		then := c.Put.Add(-time.Hour)
		require.NoError(t, os.Chtimes(d.chunk(c.Name), then, then))
	}
}

func digests(t *testing.T, s Store) (all []string) {
	t.Helper()
	for c, err := range s.Chunks(t.Context(), "") {
		require.NoError(t, err)
		all = append(all, c.Name)
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
	require.NoError(t, d.PutChunk(ctx, "none", []byte("nothing of ours")))

	want := CollectResult{Sessions: 1, Chunks: 4, Deleted: 1, Left: 1}
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
	require.Equal(t, 1, done.Deleted)
	require.Equal(t, []string{"a", "b"}, said(t, d, "s"))
	require.True(t, has(t, d, "none"))
	_, err = l.Collect(ctx, -time.Second, false)
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}

func has(t *testing.T, s Store, digest string) bool {
	t.Helper()
	_, err := s.Chunk(t.Context(), digest)
	if err != nil {
		require.ErrorIs(t, err, agent.CodeChunkMissing)
	}
	return err == nil
}

// hooked is a store where something happens in the middle of a call.
type hooked struct {
	*Dir
	afterHead   func(h Head)         // in a list
	beforeMark  func(session string) // of a head for deletion
	afterChunk  func(digest string)
	beforeChunk func(digest string) // is deleted
	keep        bool                // no chunk is deleted
	failDelete  int                 // the chunk whose deletion fails, from 1
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

func (h *hooked) PutHead(ctx context.Context, head Head) error {
	if h.beforeMark != nil && head.Deleting {
		h.beforeMark(head.Session)
	}
	return h.Dir.PutHead(ctx, head)
}

func (h *hooked) Chunk(ctx context.Context, digest string) ([]byte, error) {
	data, err := h.Dir.Chunk(ctx, digest)
	if h.afterChunk != nil {
		h.afterChunk(digest)
	}
	return data, err
}

func (h *hooked) DeleteChunk(ctx context.Context, digest string, before time.Time) (bool, error) {
	if h.beforeChunk != nil {
		h.beforeChunk(digest)
	}
	if h.keep {
		return true, nil
	}
	if h.failDelete--; h.failDelete == 0 {
		return false, agent.Errorf(agent.CodeStoreUnavailable, "cut short")
	}
	return h.Dir.DeleteChunk(ctx, digest, before)
}

// A session is forked and deleted while it is collected: what the fork needs stays.
func TestWhatChangesHandsIsNotCollected(t *testing.T) {
	for name, first := range map[string]string{"before it": "b", "after it": "z"} {
		t.Run(name, func(t *testing.T) {
			ctx, d := t.Context(), open1(t)
			say(t, d, "b", "b")
			say(t, d, "z", "a")
			say(t, d, "z", "z")
			age(t, d)
			moved := false
			l := NewLog(&hooked{Dir: d, afterHead: func(h Head) {
				if h.Session != first || moved {
					return
				}
				moved = true
				fork(t, d, "z", "a")
				_, err := NewLog(d).Delete(ctx, "z")
				require.NoError(t, err)
			}})
			done, err := l.Collect(ctx, time.Minute, false)
			require.NoError(t, err)
			require.True(t, moved)
			require.Zero(t, done.Deleted)
			require.Equal(t, []string{"a", "z"}, said(t, d, "a"))
			gone, err := NewLog(d).Delete(ctx, "a")
			require.NoError(t, err)
			require.Len(t, gone.Chunks, 2)
		})
	}
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

// Faults of every kind: the session is told of and keeps what it has, and all others are
// collected and deleted as ever.
func TestASessionThatCanNotBeReadHindersNoOther(t *testing.T) {
	long := strings.Repeat("x", 100) + "/y-1"
	damage := func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) }
	for name, fault := range map[string]struct {
		make func(d *Dir, chunk string) error
		want Fault
	}{
		"missing":      {func(d *Dir, chunk string) error { return os.Remove(d.chunk(chunk)) }, Fault{Session: "s", Chunk: "CHUNK", Code: agent.CodeChunkMissing}},
		"damaged":      {func(d *Dir, chunk string) error { return damage(d.chunk(chunk)) }, Fault{Session: "s", Chunk: "CHUNK", Code: agent.CodeChunkDamaged}},
		"head":         {func(d *Dir, _ string) error { return damage(d.head("s")) }, Fault{Session: "s", Code: agent.CodeChunkDamaged}},
		"unnamed head": {func(d *Dir, _ string) error { return damage(d.head(long)) }, Fault{Code: agent.CodeChunkDamaged}},
		"newer": {func(d *Dir, _ string) error {
			return d.PutHead(context.Background(), Head{V: HeadVersion + 1, Version: 3, Session: "s", Fence: agent.Fence{Chain: 1, N: 3}})
		}, Fault{Session: "s", Code: agent.CodeIncompatible}},
	} {
		t.Run(name, func(t *testing.T) {
			d := open1(t)
			first := say(t, d, "s", "a")
			say(t, d, "s", "b")
			say(t, d, long, "l")
			say(t, d, "whole", "w")
			say(t, d, "source", "shared")
			fork(t, d, "source", "s2")
			lost := func(session string) string {
				digest, err := NewLog(d).Seal(t.Context(), "", session, "r", false, events(1, "no session needs this"))
				require.NoError(t, err)
				return digest
			}
			own, others := lost("s"), lost("whole")
			age(t, d)
			require.NoError(t, fault.make(d, first))

			found, err := NewLog(d).Check(t.Context())
			require.NoError(t, err)
			require.Equal(t, 5, found.Sessions)
			require.Len(t, found.Faults, 1)
			got := found.Faults[0]
			require.NotEmpty(t, got.Message)
			got.Message = ""
			if fault.want.Chunk != "" {
				fault.want.Chunk = first
			}
			require.Equal(t, fault.want, got)

			done, err := NewLog(d).Collect(t.Context(), 0, false)
			require.NoError(t, err)
			require.Equal(t, found.Faults, done.Faults)
			require.Equal(t, fault.want.Session != "s", !has(t, d, own), "what a session that can't be read may need stays")
			require.False(t, has(t, d, others))
			require.Equal(t, []string{"w"}, said(t, d, "whole"))

			gone, err := NewLog(d).Delete(t.Context(), "whole")
			require.NoError(t, err)
			require.Len(t, gone.Chunks, 1)
			gone, err = NewLog(d).Delete(t.Context(), "source")
			require.NoError(t, err)
			require.Len(t, gone.Shared, 1)
			require.Equal(t, []string{"shared"}, said(t, d, "s2"))
		})
	}
}

// Who needs the chunks of a session is known by its edges: a fork that can't be read
// keeps what it was forked from, and nothing else.
func TestAForkThatCanNotBeReadKeepsItsOrigin(t *testing.T) {
	d := open1(t)
	shared := say(t, d, "a", "1")
	fork(t, d, "a", "b")
	own := say(t, d, "a", "2")
	require.NoError(t, os.WriteFile(d.head("b"), []byte("{"), 0o600))
	done, err := NewLog(d).Delete(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, []string{own}, done.Chunks)
	require.Equal(t, []SharedChunks{{Session: "b", Chunks: []string{shared}}}, done.Shared)
	age(t, d)
	collected, err := NewLog(d).Collect(t.Context(), 0, false)
	require.NoError(t, err)
	require.Zero(t, collected.Deleted)
	require.Len(t, collected.Faults, 1)
}

// A collection that is cut short has deleted only what nobody needs, and tells how much. The next one
// does the rest.
func TestACollectionThatIsCutShortIsDoneByTheNext(t *testing.T) {
	for name, cut := range map[string]func(h *hooked, stop func()){
		"the store fails": func(h *hooked, _ func()) { h.failDelete = 3 },
		"its context is over": func(h *hooked, stop func()) {
			n := 0
			h.beforeChunk = func(string) {
				if n++; n == 3 {
					stop()
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := open1(t)
			var lost []string
			for _, session := range []string{"a", "b", "c"} {
				first := say(t, d, session, "kept")
				for n := range 2 {
					digest, err := NewLog(d).Seal(t.Context(), first, session, "r2", false, events(2, fmt.Sprint("never a head ", n)))
					require.NoError(t, err)
					lost = append(lost, digest)
				}
			}
			age(t, d)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			h := &hooked{Dir: d}
			cut(h, stop)
			done, err := NewLog(h).Collect(ctx, time.Minute, false)
			require.Error(t, err)
			require.Equal(t, 2, done.Deleted)
			left := 0
			for _, digest := range lost {
				if has(t, d, digest) {
					left++
				}
			}
			require.Equal(t, 4, left)
			done, err = NewLog(d).Collect(t.Context(), time.Minute, false)
			require.NoError(t, err)
			require.Equal(t, []int{3, 4, 0}, []int{done.Sessions, done.Deleted, len(done.Faults)})
			for _, session := range []string{"a", "b", "c"} {
				require.Equal(t, []string{"kept"}, said(t, d, session))
			}
			require.Len(t, digests(t, d), 3)
		})
	}
}

// A fork that crashed before its head was there has left an edge: it keeps the chunks
// for an hour, and no longer.
func TestAnEdgeWithoutAHeadIsCollected(t *testing.T) {
	d := open1(t)
	l := NewLog(d)
	shared := say(t, d, "a", "1")
	require.NoError(t, l.Adopt(t.Context(), "b", shared, "a"))
	done, err := l.Delete(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, []SharedChunks{{Session: "b", Chunks: []string{shared}}}, done.Shared)
	require.ErrorIs(t, l.Adopt(t.Context(), "c", shared, "a"), agent.CodeStale, "who forks a session that was deleted just now is told so")
	collected, err := l.Collect(t.Context(), time.Hour, false)
	require.NoError(t, err)
	require.True(t, has(t, d, shared))
	require.Equal(t, 1, collected.Chunks)
	age(t, d)
	for range 2 { // edges first, or with them
		_, err = l.Collect(t.Context(), time.Minute, false)
		require.NoError(t, err)
	}
	require.Empty(t, digests(t, d))
}

// counted counts what is read of a store, by what it is.
type counted struct {
	*Dir
	chunks, starts, heads, listed atomic.Int64
}

func (c *counted) Chunks(ctx context.Context, prefix string) iter.Seq2[ChunkInfo, error] {
	return func(yield func(ChunkInfo, error) bool) {
		for info, err := range c.Dir.Chunks(ctx, prefix) {
			c.listed.Add(1)
			if !yield(info, err) {
				return
			}
		}
	}
}

func (c *counted) Chunk(ctx context.Context, name string) ([]byte, error) {
	c.chunks.Add(1)
	return c.Dir.Chunk(ctx, name)
}

func (c *counted) ChunkStart(ctx context.Context, name string, most int) ([]byte, error) {
	c.starts.Add(1)
	return c.Dir.ChunkStart(ctx, name, most)
}

func (c *counted) Head(ctx context.Context, session string) (Head, error) {
	c.heads.Add(1)
	return c.Dir.Head(ctx, session)
}

// Neither reads what was said: a deletion asks for the session's own and its forks, and
// a collection for heads and few envelopes.
func TestWhatIsNotNeededIsFoundWithoutReadingIt(t *testing.T) {
	c := &counted{Dir: open1(t)}
	for i := range 30 {
		for range 5 {
			say(t, c.Dir, fmt.Sprint("s", i), "a")
		}
	}
	fork(t, c.Dir, "s7", "fork")
	collected, err := NewLog(c).Collect(t.Context(), 0, true)
	require.NoError(t, err)
	require.Equal(t, CollectResult{Sessions: 31, Chunks: 150}, collected)
	require.Zero(t, c.chunks.Load(), "chunks that were read")
	require.LessOrEqual(t, c.starts.Load(), int64(2*31), "envelopes that were read")
	c.starts.Store(0)
	c.heads.Store(0)
	done, err := NewLog(c).Delete(t.Context(), "s7")
	require.NoError(t, err)
	require.Len(t, done.Shared, 1)
	require.Zero(t, c.chunks.Load())
	require.LessOrEqual(t, c.starts.Load()+c.heads.Load(), int64(10), "heads and envelopes that were read")
}

// A deletion lists the chunks and edges of its session. It lists no more if the store has
// many other sessions.
func TestADeletionListsOnlyItsSession(t *testing.T) {
	names := map[int]int64{}
	for _, others := range []int{1, 30} {
		c := &counted{Dir: open1(t)}
		for range 5 {
			say(t, c.Dir, "s", "a")
			say(t, c.Dir, "s/w-1", "b")
			for i := range others {
				say(t, c.Dir, fmt.Sprint("other", i), "c")
			}
		}
		fork(t, c.Dir, "s", "fork")
		done, err := NewLog(c).Delete(t.Context(), "s")
		require.NoError(t, err)
		require.Len(t, done.Shared, 1)
		require.Len(t, done.Chunks, 5)
		names[others] = c.listed.Load()
	}
	require.Equal(t, names[1], names[30])
	// Ten chunks and one edge. What the fork needs is listed once more, to verify.
	require.LessOrEqual(t, names[30], int64(2*11), "names that were listed")
	require.Positive(t, names[30])
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
	require.Equal(t, CheckResult{Sessions: 2, Chunks: 6}, found)
}
