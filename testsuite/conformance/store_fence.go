package conformance

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// fenced returns a version of the head of session "s".
func fenced(version, chain, n int64, by string) store.Head {
	return store.Head{V: 1, Version: version, Session: "s", Fence: agent.Fence{Chain: chain, N: n, By: by}, Run: by}
}

// withBacklog returns a head whose run has accepted an event and has not handled it yet.
func withBacklog(h store.Head) store.Head {
	h.Backlog.Events = []agent.EmitCommand{{Topic: "waits", Payload: []byte("1")}}
	return h
}

func lowerFenceIsRefused(t testing.TB, s store.Store) {
	ctx := t.Context()
	require.NoError(t, s.PutHead(ctx, fenced(1, 5, 3, "first")))
	for _, lower := range []store.Head{fenced(2, 5, 2, "late"), fenced(2, 4, 9, "late"), fenced(2, 0, 0, "")} {
		require.ErrorIs(t, s.PutHead(ctx, lower), agent.CodeStale, "a head with the right version and the fence %v, where %v is stored", lower.Fence, fenced(1, 5, 3, "first").Fence)
	}
	require.ErrorIs(t, s.PutHead(ctx, fenced(2, math.MaxInt64, 1, "far")), agent.CodeStale, "a chain above store.MaxChain: no run could write the session after it")
	far := fenced(1, store.MaxChain+1, 1, "far")
	far.Session = "far"
	require.ErrorIs(t, s.PutHead(ctx, far), agent.CodeStale, "the first head of a session, with a chain above store.MaxChain")
	require.NoError(t, s.PutHead(ctx, fenced(2, 5, 3, "first")), "the same fence is not lower: rekey stores a head again with the same fence")
	require.NoError(t, s.PutHead(ctx, fenced(3, 6, 1, "next")), "a higher chain counts from one again")
	h, err := s.Head(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, fenced(3, 6, 1, "next"), h, "the head that was put last")
}

// delayedStore delays one put or one deletion of a head.
type delayedStore struct {
	store.Store
	come, proceed chan struct{}
}

func (s *delayedStore) wait() {
	select {
	case s.come <- struct{}{}:
		<-s.proceed
	case <-s.proceed: // only the first write is delayed
	}
}

func (s *delayedStore) PutHead(ctx context.Context, h store.Head) error {
	s.wait()
	return s.Store.PutHead(ctx, h)
}

func (s *delayedStore) DeleteHead(ctx context.Context, session string, version int64) error {
	s.wait()
	return s.Store.DeleteHead(ctx, session, version)
}

// lateWrite is a write that is delayed until its successors are stored.
type lateWrite struct {
	name   string
	before []store.Head // stored when it begins
	late   func(context.Context, *store.Log) error
	next   []func(context.Context, *store.Log) error
}

type write = func(context.Context, *store.Log) error

func puts(h store.Head) write {
	return func(ctx context.Context, l *store.Log) error { _, err := l.PutHead(ctx, h); return err }
}

func swaps(h store.Head) write {
	return func(ctx context.Context, l *store.Log) error { _, err := l.SwapHead(ctx, h); return err }
}

func deletes(version int64) write {
	return func(ctx context.Context, l *store.Log) error { return l.Store().DeleteHead(ctx, "s", version) }
}

// marks marks a head for deletion, as [store.Log.Delete] does first.
func marks(h store.Head) write {
	h.Deleting = true
	return func(ctx context.Context, l *store.Log) error { return l.Store().PutHead(ctx, h) }
}

// lateWrites are all kinds of writes. Their versions are what the writer believes to be
// right.
var lateWrites = []lateWrite{
	{"a seal, after its own second attempt and the run's end", []store.Head{fenced(1, 5, 1, "claim")},
		puts(fenced(2, 5, 2, "seal")), []write{puts(fenced(2, 5, 2, "seal")), puts(fenced(3, 5, 3, "end"))}},
	{"a seal, after the next run has started and ended", []store.Head{fenced(1, 5, 1, "claim")},
		puts(fenced(2, 5, 2, "seal")), []write{swaps(fenced(2, 6, 1, "next")), puts(fenced(3, 6, 2, "end of next"))}},
	{"a seal, after its run was ended from outside and the next run has stored its end", []store.Head{fenced(1, 5, 1, "claim")},
		puts(fenced(2, 5, 2, "seal")), []write{swaps(fenced(2, 6, 1, "next")), puts(fenced(3, 6, 2, "recovered"))}},
	{"a seal of an execution, after it was reset", []store.Head{fenced(1, 5, 1, "claim")},
		puts(fenced(2, 5, 2, "before the reset")), []write{puts(fenced(2, 5, 2, "after the reset"))}},
	// The event that is stored again would be handled twice, and one that is dropped never.
	{"a seal with a backlog, after a seal that has handled it", []store.Head{withBacklog(fenced(1, 5, 1, "claim"))},
		puts(withBacklog(fenced(2, 5, 2, "seal"))), []write{puts(withBacklog(fenced(2, 5, 2, "seal"))), puts(fenced(3, 5, 3, "handled"))}},
	{"a seal without a backlog, after a seal that has one", []store.Head{fenced(1, 5, 1, "claim")},
		puts(fenced(2, 5, 2, "seal")), []write{puts(fenced(2, 5, 2, "seal")), puts(withBacklog(fenced(3, 5, 3, "accepted")))}},
	{"a seal, after its session was deleted", []store.Head{fenced(1, 5, 1, "claim")},
		puts(fenced(2, 5, 2, "seal")), []write{deletes(1)}},
	{"a seal, after its session was deleted and has started again", []store.Head{fenced(1, 5, 1, "claim")},
		puts(fenced(2, 5, 2, "seal")), []write{deletes(1), swaps(fenced(3, 6, 1, "anew"))}},
	{"a session's first seal, after its second attempt, the end and the deletion", nil,
		puts(fenced(1, 5, 1, "seal")), []write{puts(fenced(1, 5, 1, "seal")), puts(fenced(2, 5, 2, "end")), deletes(2)}},
	{"a claim, after another run's", []store.Head{fenced(1, 5, 1, "end")},
		swaps(fenced(2, 6, 1, "claim")), []write{swaps(fenced(2, 6, 1, "other")), puts(fenced(3, 6, 2, "end of other"))}},
	{"a claim, after its own second attempt and the run's end", []store.Head{fenced(1, 5, 1, "end")},
		swaps(fenced(2, 6, 1, "claim")), []write{swaps(fenced(2, 6, 1, "claim")), puts(fenced(3, 6, 2, "end"))}},
	{"an import, after another one that was taken up", nil,
		swaps(fenced(1, 5, 1, "import")), []write{swaps(fenced(1, 6, 1, "other")), puts(fenced(2, 7, 1, "run of other"))}},
	{"a fork's first head, after its own second attempt", []store.Head{fenced(1, 5, 1, "claim")},
		swaps(fenced(2, 5, 2, "fork")), []write{swaps(fenced(2, 5, 2, "fork again")), puts(fenced(3, 5, 3, "end"))}},
	{"a head under a new key, after a seal", []store.Head{fenced(1, 5, 1, "claim")},
		swaps(fenced(2, 5, 1, "claim")), []write{puts(fenced(2, 5, 2, "end"))}},
	{"a deletion's mark, after a seal", []store.Head{fenced(1, 5, 1, "claim")},
		marks(fenced(2, 5, 1, "claim")), []write{puts(fenced(2, 5, 2, "end"))}},
	{"a deletion's mark, after another deletion and a new beginning", []store.Head{fenced(1, 5, 1, "claim")},
		marks(fenced(2, 5, 1, "claim")), []write{marks(fenced(2, 5, 1, "claim")), deletes(2), swaps(fenced(4, 6, 1, "anew"))}},
	{"a seal, after a deletion has begun", []store.Head{fenced(1, 5, 1, "claim")},
		puts(fenced(2, 5, 2, "seal")), []write{marks(fenced(2, 5, 1, "claim"))}},
	{"a deletion, after a seal", []store.Head{fenced(1, 5, 1, "claim")},
		deletes(1), []write{puts(fenced(2, 5, 2, "end"))}},
	{"a deletion, after another one and a new beginning", []store.Head{fenced(1, 5, 1, "claim")},
		deletes(1), []write{deletes(1), swaps(fenced(3, 6, 1, "anew"))}},
}

// lateTwinChangesNothing delays each kind of write until its successors are stored, and
// repeats it once more later.
func lateTwinChangesNothing(t testing.TB, s store.Store) {
	ctx := t.Context()
	for i, w := range lateWrites {
		// Each case continues after a deletion, so the offsets keep its versions above
		// the last ones.
		forget(t, s)
		left, _ := s.Head(ctx, "s")
		base := numbers{left.Version, left.Fence.Chain}
		on := &offsetStore{Store: s, base: base}
		for _, h := range w.before {
			require.NoError(t, on.PutHead(ctx, h), "%d: %s", i, w.name)
		}
		slow := &delayedStore{Store: on, come: make(chan struct{}), proceed: make(chan struct{})}
		result := make(chan error, 1)
		go func() { result <- w.late(ctx, store.NewLog(slow)) }()
		// The late write waits now, so its successors are stored before it.
		<-slow.come
		for _, next := range w.next {
			require.NoError(t, next(ctx, store.NewLog(on)), "%s: what comes after it", w.name)
		}
		want, wantErr := s.Head(ctx, "s")
		close(slow.proceed)
		<-result // if the same write was stored already, it may succeed
		for range 2 {
			got, err := s.Head(ctx, "s")
			require.Equal(t, agent.CodeOf(wantErr), agent.CodeOf(err), "%s: the head after the late write", w.name)
			require.Equal(t, want, got, "%s was delayed and has changed the head: a run's data is silently lost", w.name)
			// A second late attempt, as of a retried activity.
			_ = w.late(ctx, store.NewLog(on))
		}
	}
}

// forget deletes the session's head, if it has one.
func forget(t testing.TB, s store.Store) {
	h, err := s.Head(t.Context(), "s")
	if err == nil {
		require.NoError(t, s.DeleteHead(t.Context(), "s", h.Version))
	}
}

// numbers are the version and the chain of a deleted session.
type numbers struct{ version, chain int64 }

// offsetStore lets a case count from 1 in a session that was deleted before.
type offsetStore struct {
	store.Store
	base numbers
}

func (b *offsetStore) PutHead(ctx context.Context, h store.Head) error {
	h.Version += b.base.version
	h.Fence.Chain += b.base.chain
	return b.Store.PutHead(ctx, h)
}

func (b *offsetStore) Head(ctx context.Context, session string) (store.Head, error) {
	h, err := b.Store.Head(ctx, session)
	h.Version -= b.base.version
	h.Fence.Chain -= b.base.chain
	return h, err
}

func (b *offsetStore) DeleteHead(ctx context.Context, session string, version int64) error {
	return b.Store.DeleteHead(ctx, session, version+b.base.version)
}
