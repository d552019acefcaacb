package store

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

func TestASessionIsDeletedWithAllBelowIt(t *testing.T) {
	ctx, d := t.Context(), open1(t)
	l := NewLog(d)
	gone := []string{say(t, d, "s", "a"), say(t, d, "s", "b"), say(t, d, "s/w-1", "c"), say(t, d, "s/w-1/x-2", "d")}
	for _, other := range []string{"s2", "s:x", "r", "t/s/w-1"} {
		say(t, d, other, other)
	}
	v, err := l.View(ctx, gone[1])
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, texts(v))

	done, err := l.Delete(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, []string{"s/w-1", "s/w-1/x-2", "s"}, done.Sessions)
	require.ElementsMatch(t, gone, done.Chunks)
	require.Empty(t, done.Shared)
	for _, digest := range gone {
		_, err := l.View(ctx, digest)
		require.ErrorIs(t, err, agent.CodeChunkMissing, "nor is it in memory")
	}
	files, err := os.ReadDir(d.Root() + "/heads")
	require.NoError(t, err)
	require.Len(t, files, 4, "nothing has the name of a session that is gone")
	for _, other := range []string{"s2", "s:x", "r", "t/s/w-1"} {
		require.Equal(t, []string{other}, said(t, d, other))
	}
	_, err = l.Delete(ctx, "s")
	require.ErrorIs(t, err, agent.CodeNotFound)
	done, err = l.Delete(ctx, "t")
	require.NoError(t, err, "a session's own head may be missing")
	require.Equal(t, []string{"t/s/w-1"}, done.Sessions)
}

func TestWhatAForkNeedsIsKept(t *testing.T) {
	ctx, d := t.Context(), open1(t)
	shared := []string{say(t, d, "a", "1"), say(t, d, "a", "2")}
	fork(t, d, "a", "b")
	fork(t, d, "a", "b/c-1")
	own := say(t, d, "a", "3")
	more := say(t, d, "b", "4")

	done, err := NewLog(d).Delete(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, []string{own}, done.Chunks)
	require.Len(t, done.Shared, 2)
	for i, by := range []string{"b", "b/c-1"} {
		require.Equal(t, by, done.Shared[i].Session)
		require.ElementsMatch(t, shared, done.Shared[i].Chunks)
	}
	require.Equal(t, []string{"1", "2", "4"}, said(t, d, "b"))

	done, err = NewLog(d).Delete(ctx, "b")
	require.NoError(t, err)
	require.ElementsMatch(t, append(shared, more), done.Chunks, "with the last that needs them")
	require.Empty(t, digests(t, d))
}

func TestAForkThatComesInTheLastMomentIsSeen(t *testing.T) {
	d := open1(t)
	say(t, d, "a", "1")
	l := NewLog(&hooked{Dir: d, beforeMark: func(string) { fork(t, d, "a", "b") }})
	done, err := l.Delete(t.Context(), "a")
	require.NoError(t, err)
	require.Len(t, done.Shared, 1)
	require.Equal(t, []string{"1"}, said(t, d, "b"))
}

func TestASessionThatIsWrittenIsNotDeleted(t *testing.T) {
	d := open1(t)
	say(t, d, "a", "1")
	l := NewLog(&hooked{Dir: d, beforeMark: func(string) { say(t, d, "a", "2") }})
	done, err := l.Delete(t.Context(), "a")
	require.ErrorIs(t, err, agent.CodeStale)
	require.Empty(t, done.Sessions)
	require.Equal(t, []string{"1", "2"}, said(t, d, "a"))
}

func TestADeletionThatDidNothingIsAnError(t *testing.T) {
	d := open1(t)
	digest := say(t, d, "a", "1")
	_, err := NewLog(&hooked{Dir: d, keep: true}).Delete(t.Context(), "a")
	require.ErrorIs(t, err, agent.CodeStoreUnavailable)
	require.Contains(t, err.Error(), digest)
}

// A run that nobody ended writes nothing to a session that is being deleted.
func TestADeletionRefusesALateRun(t *testing.T) {
	ctx, d := t.Context(), open1(t)
	say(t, d, "b", "1")
	late := headOf(t, d, "b")
	refused := false
	_, err := NewLog(&hooked{Dir: d, beforeChunk: func(string) {
		refused = true
		l := NewLog(d)
		_, err := l.Head(ctx, "b")
		require.ErrorIs(t, err, agent.CodeNotFound)
		late.Version, late.Fence.N = late.Version+1, late.Fence.N+1
		_, err = l.PutHead(ctx, late)
		require.ErrorIs(t, err, agent.CodeStale)
	}}).Delete(ctx, "b")
	require.NoError(t, err)
	require.True(t, refused)
	require.Empty(t, digests(t, d))
}

// A session that a run has begun to write keeps its children too.
func TestASessionThatIsWrittenKeepsItsChildren(t *testing.T) {
	d := open1(t)
	say(t, d, "a", "1")
	say(t, d, "a/w-1", "1")
	first := true
	done, err := NewLog(&hooked{Dir: d, beforeMark: func(string) {
		if first {
			first = false
			say(t, d, "a", "2")
		}
	}}).DeleteVersion(t.Context(), "a", headOf(t, d, "a").Version)
	require.ErrorIs(t, err, agent.CodeStale)
	require.Empty(t, done.Sessions)
	require.Equal(t, []string{"1"}, said(t, d, "a/w-1"))
}

// The time of a session whose deletion was cut short is over, and a check of the store reports
// nothing that is missing from it.
func TestADeletionThatWasCutShortIsFound(t *testing.T) {
	ctx, d := t.Context(), open1(t)
	say(t, d, "a", "1")
	say(t, d, "a", "2")
	_, err := NewLog(&hooked{Dir: d, failDelete: 2}).DeleteVersion(ctx, "a", headOf(t, d, "a").Version)
	require.ErrorIs(t, err, agent.CodeStoreUnavailable)
	h, err := d.Head(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, h.Updated, h.DeleteAfter())
	require.True(t, h.Deleting)
	checked, err := NewLog(d).Check(ctx)
	require.NoError(t, err)
	require.Empty(t, checked.Faults)
	_, err = NewLog(d).DeleteVersion(ctx, "a", h.Version)
	require.NoError(t, err)
	require.Empty(t, digests(t, d))
}

func TestABrokenSessionCanBeDeleted(t *testing.T) {
	for name, forked := range map[string]bool{"alone": false, "with a fork": true} {
		t.Run(name, func(t *testing.T) {
			ctx, d := t.Context(), open1(t)
			below, broken := say(t, d, "a", "1"), say(t, d, "a", "2")
			if forked {
				fork(t, d, "a", "b")
			}
			above := say(t, d, "a", "3")
			require.NoError(t, os.WriteFile(d.chunk(broken), []byte("x"), 0o600))
			done, err := NewLog(d).Delete(ctx, "a")
			require.NoError(t, err)
			require.Equal(t, []string{"a"}, done.Sessions)
			if forked {
				require.Empty(t, done.Chunks)
				require.Len(t, done.Faults, 1)
				require.Equal(t, []any{"b", broken}, []any{done.Faults[0].Session, done.Faults[0].Chunk})
				require.True(t, has(t, d, broken), "it may be mended for the fork")
				require.True(t, has(t, d, below))
				return
			}
			require.ElementsMatch(t, []string{above, broken, below}, done.Chunks)
		})
	}
}

// A deletion that was cut short is called again, and goes on.
func TestADeletionGoesOn(t *testing.T) {
	d := open1(t)
	say(t, d, "a", "1")
	say(t, d, "a", "2")
	say(t, d, "a/b-1", "3")
	h := &hooked{Dir: d, failDelete: 2}
	_, err := NewLog(h).Delete(t.Context(), "a")
	require.ErrorIs(t, err, agent.CodeStoreUnavailable)
	for len(digests(t, d)) > 0 {
		h.failDelete = 1
		_, err = NewLog(h).Delete(t.Context(), "a")
		if err != nil {
			require.ErrorIs(t, err, agent.CodeStoreUnavailable)
			_, err = NewLog(d).Delete(t.Context(), "a")
			require.NoError(t, err)
		}
	}
	_, err = NewLog(d).Delete(t.Context(), "a")
	require.ErrorIs(t, err, agent.CodeNotFound)
}

func TestAViewThatIsReadDuringADeletionIsNotKept(t *testing.T) {
	ctx, d := t.Context(), open1(t)
	digest := say(t, d, "a", "1")
	h := &hooked{Dir: d}
	l := NewLog(h)
	h.afterChunk = func(string) {
		h.afterChunk = nil
		_, err := l.Delete(ctx, "a")
		require.NoError(t, err)
	}
	_, err := l.View(ctx, digest)
	require.NoError(t, err, "it was read before")
	_, err = l.View(ctx, digest)
	require.ErrorIs(t, err, agent.CodeChunkMissing)
}

// A session that is forked again while its deletion still runs needs the same edge: a
// deletion that comes late does not take the new one.
func TestALateDeletionLeavesANewEdge(t *testing.T) {
	ctx, d := t.Context(), open1(t)
	shared := say(t, d, "a", "1")
	fork(t, d, "a", "b")
	edge := edgeName("b", shared)
	anew := false
	_, err := NewLog(&hooked{Dir: d, beforeChunk: func(name string) {
		if name != edge || anew {
			return
		}
		anew = true
		_, err := NewLog(d).Delete(ctx, "b") // another deletion was quicker
		require.NoError(t, err)
		h, err := d.Head(ctx, "b")
		require.ErrorIs(t, err, agent.CodeNotFound)
		require.NoError(t, NewLog(d).Adopt(ctx, "b", shared, "a"))
		source := headOf(t, d, "a")
		source.Session, source.Version, source.Fence, source.Recent = "b", h.Version+1, h.Fence.After(1), nil
		_, err = NewLog(d).PutHead(ctx, source)
		require.NoError(t, err)
	}}).Delete(ctx, "b")
	require.True(t, anew)
	require.ErrorIs(t, err, agent.CodeStale, "it was written meanwhile")
	require.True(t, has(t, d, edge))
	done, err := NewLog(d).Delete(ctx, "a")
	require.NoError(t, err)
	require.Empty(t, done.Chunks)
	require.Equal(t, []string{"1"}, said(t, d, "b"))
}
