package conformance

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// cutStore ends at one of its writes of a deletion: every later one fails too, as in a process
// that was killed.
type cutStore struct {
	store.Store
	left  int  // writes until then
	whole bool // the last write is stored, and only its answer is lost
}

func (s *cutStore) cut(write func() error) error {
	s.left--
	if s.left > 0 {
		return write()
	}
	if s.left == 0 && s.whole {
		_ = write()
	}
	return agent.Errorf(agent.CodeStoreUnavailable, "cut short")
}

func (s *cutStore) PutHead(ctx context.Context, h store.Head) error {
	return s.cut(func() error { return s.Store.PutHead(ctx, h) })
}

func (s *cutStore) DeleteHead(ctx context.Context, session string, version int64) error {
	return s.cut(func() error { return s.Store.DeleteHead(ctx, session, version) })
}

func (s *cutStore) DeleteChunk(ctx context.Context, name string, before time.Time) (gone bool, err error) {
	err = s.cut(func() (err error) { gone, err = s.Store.DeleteChunk(ctx, name, before); return err })
	return gone, err
}

// deletionGoesOn cuts a deletion short at each of its writes. Whoever lists the heads finds what
// is left and deletes it.
func deletionGoesOn(t testing.TB, s store.Store) {
	ctx := t.Context()
	for n, done := 1, false; !done; n++ {
		for _, whole := range []bool{false, true} {
			for _, session := range []string{"s", "s", "s/w-1"} {
				_, err := write1(ctx, s, session)
				require.NoError(t, err, "a session that was deleted begins again")
			}
			_, err := store.NewLog(&cutStore{Store: s, left: n, whole: whole}).Delete(ctx, "s")
			if done = err == nil; done {
				require.Greater(t, n, 6, "a deletion writes each head twice, and deletes each chunk")
				break
			}
			left := listedSessions(t, s, "")
			if len(left) == 0 {
				require.True(t, whole, "the head is gone after %d writes, and the deletion goes on", n)
			} else {
				require.Contains(t, left, "s", "after %d writes of a deletion: nobody finds the session's head, and %d chunks stay for ever", n, len(listedChunks(t, s)))
				_, err = store.NewLog(s).Delete(ctx, "s")
				require.NoError(t, err, "a deletion that was cut short after %d writes, again", n)
			}
			require.Empty(t, listedSessions(t, s, ""), "heads after a deletion that was cut short after %d writes", n)
			require.Empty(t, listedChunks(t, s), "chunks after a deletion that was cut short after %d writes", n)
		}
	}
}

// write1 stores one chunk and the head of a session, as a run does.
func write1(ctx context.Context, s store.Store, session string) (chunk string, err error) {
	l := store.NewLog(s)
	h, err := l.Vacate(ctx, session)
	if err != nil && agent.CodeOf(err) != agent.CodeNotFound {
		return "", err
	}
	m := agent.TextMessage(agent.RoleUser, time.Now().String())
	h.V, h.Session, h.Version, h.Seq, h.Run = store.HeadVersion, session, h.Version+1, h.Seq+1, "r"
	h.Fence = agent.Fence{Chain: h.Fence.Chain + 1, N: 1, By: "r"}
	h.Digest, err = l.Seal(ctx, h.Digest, session, "r", false, []agent.Event{{Seq: h.Seq, Type: agent.EventMessage, Time: time.Unix(0, 0).UTC(), Message: &m}})
	if err == nil {
		_, err = l.PutHead(ctx, h)
	}
	return h.Digest, err
}

// pausedStore calls something once: before it lists chunks, or before it deletes the first one.
type pausedStore struct {
	store.Store
	listing bool
	once    func()
}

func (s *pausedStore) at(listing bool) {
	if once := s.once; once != nil && listing == s.listing {
		s.once = nil
		once()
	}
}

func (s *pausedStore) Chunks(ctx context.Context, prefix string) iter.Seq2[store.ChunkInfo, error] {
	s.at(true)
	return s.Store.Chunks(ctx, prefix)
}

func (s *pausedStore) DeleteChunk(ctx context.Context, name string, before time.Time) (bool, error) {
	s.at(false)
	return s.Store.DeleteChunk(ctx, name, before)
}

// newSessionOutlivesDeletion begins a session while its deletion is under way. The rest of that
// deletion must leave the new session whole.
func newSessionOutlivesDeletion(t testing.TB, s store.Store) {
	beginsAnew(t, s, true)
	beginsAnew(t, s, false)
}

func beginsAnew(t testing.TB, s store.Store, listing bool) {
	ctx := t.Context()
	_, err := store.NewLog(s).Delete(ctx, "s")
	require.Contains(t, []agent.Code{"", agent.CodeNotFound}, agent.CodeOf(err))
	old, err := write1(ctx, s, "s")
	require.NoError(t, err)
	late, err := s.Head(ctx, "s")
	require.NoError(t, err)
	var anew string
	_, err = store.NewLog(&pausedStore{Store: s, listing: listing, once: func() {
		l := store.NewLog(s)
		_, err := l.Head(ctx, "s")
		require.ErrorIs(t, err, agent.CodeNotFound, "a session that is being deleted is read")
		late.Version, late.Fence.N = late.Version+1, 9
		_, err = l.PutHead(ctx, late)
		require.ErrorIs(t, err, agent.CodeStale, "a run writes to a session that is being deleted")
		anew, err = write1(ctx, s, "s")
		require.NoError(t, err, "a session begins while the earlier one of its name is deleted")
	}}).Delete(ctx, "s")
	require.ErrorIs(t, err, agent.CodeStale, "a deletion of a session that has begun again meanwhile")
	h, err := s.Head(ctx, "s")
	require.NoError(t, err, "the head of a session that began during a deletion")
	require.Equal(t, anew, h.Digest)
	_, err = s.Chunk(ctx, anew)
	require.NoError(t, err, "the log of a session that began during a deletion: the deletion took it for the old one's")
	_, err = s.Chunk(ctx, old)
	require.ErrorIs(t, err, agent.CodeChunkMissing, "the log of the earlier session")
}
