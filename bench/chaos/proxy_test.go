package main

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// sea is a proxy over a folder, whose mishaps a test chooses, and the store as a process
// sees it.
func sea(t *testing.T, mishaps ...mishap) (*proxy, *remote) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	p := newProxy(dir, &plan{})
	p.pick = func(w *write) (m mishap, l later) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(mishaps) > 0 {
			m, mishaps = mishaps[0], mishaps[1:]
		}
		return m, later{behind: 1, counted: p.made[w.of()], total: p.total, slow: time.Hour}
	}
	url, stop, err := listen(p)
	require.NoError(t, err)
	t.Cleanup(stop)
	return p, &remote{Store: dir, url: url}
}

func headOf(version, n int64, status agent.Status) store.Head {
	return store.Head{V: store.HeadVersion, Version: version, Session: "s", Fence: agent.Fence{Chain: 1, N: n, By: string(status)}, Run: "r", Status: status}
}

// versionOf is the version of the head that is stored; zero for none.
func versionOf(t *testing.T, s store.Store) int64 {
	h, err := s.Head(t.Context(), "s")
	if !errors.Is(err, agent.CodeNotFound) {
		require.NoError(t, err)
	}
	return h.Version
}

func TestProxy(t *testing.T) {
	t.Run("passes writes and refusals on", func(t *testing.T) {
		_, s := sea(t)
		require.NoError(t, s.PutHead(t.Context(), headOf(1, 1, agent.StatusRunning)))
		require.ErrorIs(t, s.PutHead(t.Context(), headOf(1, 1, agent.StatusRunning)), agent.CodeStale)
		require.NoError(t, s.PutChunk(t.Context(), "x-1", []byte("data")))
		data, err := s.Chunk(t.Context(), "x-1")
		require.NoError(t, err)
		require.Equal(t, "data", string(data))
		gone, err := s.DeleteChunk(t.Context(), "x-1", time.Now().Add(time.Hour))
		require.NoError(t, err)
		require.True(t, gone)
		require.ErrorIs(t, s.DeleteHead(t.Context(), "s", 7), agent.CodeStale)
		require.NoError(t, s.DeleteHead(t.Context(), "s", 1))
	})
	t.Run("drops", func(t *testing.T) {
		p, s := sea(t, mishapDropped)
		require.ErrorIs(t, s.PutHead(t.Context(), headOf(1, 1, agent.StatusRunning)), agent.CodeStoreUnavailable)
		p.release()
		require.Zero(t, versionOf(t, s))
	})
	t.Run("hangs", func(t *testing.T) {
		p, s := sea(t)
		require.NoError(t, s.PutChunk(t.Context(), "x-1", []byte("data")))
		require.True(t, p.hang())
		require.False(t, p.hang(), "it hangs")
		ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer leave()
		_, err := s.Chunk(ctx, "x-1")
		require.ErrorIs(t, err, agent.CodeStoreUnavailable)
		ctx, leave = context.WithCancel(t.Context())
		put := make(chan error)
		go func() { put <- s.PutHead(ctx, headOf(1, 1, agent.StatusRunning)) }()
		require.Eventually(t, func() bool { _, busy := p.state(); return busy == 1 }, 10*time.Second, time.Millisecond)
		leave()
		require.ErrorIs(t, <-put, agent.CodeStoreUnavailable)
		require.Zero(t, versionOf(t, s.Store))
		p.wake()
		p.idle()
		require.EqualValues(t, 1, versionOf(t, s), "what nobody waits for is done")
	})
	t.Run("loses an answer", func(t *testing.T) {
		_, s := sea(t, mishapUntold)
		require.ErrorIs(t, s.PutHead(t.Context(), headOf(1, 1, agent.StatusRunning)), agent.CodeStoreUnavailable)
		require.EqualValues(t, 1, versionOf(t, s))
	})
	t.Run("doubles", func(t *testing.T) {
		_, s := sea(t, mishapDoubled)
		require.ErrorIs(t, s.PutHead(t.Context(), headOf(1, 1, agent.StatusRunning)), agent.CodeStale, "the second answer")
		require.EqualValues(t, 1, versionOf(t, s))
	})
	t.Run("holds back, behind a successor", func(t *testing.T) {
		p, s := sea(t, mishapLate)
		require.ErrorIs(t, s.PutHead(t.Context(), headOf(1, 1, agent.StatusRunning)), agent.CodeStoreUnavailable)
		require.Zero(t, versionOf(t, s))
		require.NoError(t, s.PutHead(t.Context(), headOf(1, 2, agent.StatusCompleted)))
		p.idle()
		require.Equal(t, map[string]int{"put head stale": 1}, p.late)
		h, err := s.Head(t.Context(), "s")
		require.NoError(t, err)
		require.Equal(t, agent.StatusCompleted, h.Status)
	})
	t.Run("brings a twin late", func(t *testing.T) {
		p, s := sea(t, mishapTwin)
		require.NoError(t, s.PutHead(t.Context(), headOf(1, 1, agent.StatusRunning)))
		require.EqualValues(t, 1, versionOf(t, s))
		p.release()
		require.Equal(t, map[string]int{"put head stale": 1}, p.late)
	})
	t.Run("swaps", func(t *testing.T) {
		p, s := sea(t, mishapSwapped)
		first := make(chan error)
		go func() { first <- s.PutHead(t.Context(), headOf(1, 1, agent.StatusRunning)) }()
		require.Eventually(t, func() bool { return p.came() == 1 }, time.Minute, time.Millisecond)
		require.NoError(t, s.PutHead(t.Context(), headOf(1, 2, agent.StatusCompleted)))
		require.ErrorIs(t, <-first, agent.CodeStale, "it was overtaken")
	})
	t.Run("is slower than a caller, whose write comes all the same", func(t *testing.T) {
		p, s := sea(t, mishapSlow)
		ctx, cancel := context.WithCancel(t.Context())
		told := make(chan error)
		go func() { told <- s.PutHead(ctx, headOf(1, 1, agent.StatusRunning)) }()
		require.Eventually(t, func() bool { return p.came() == 1 }, time.Minute, time.Millisecond)
		cancel()
		require.ErrorIs(t, <-told, agent.CodeStoreUnavailable)
		p.release()
		require.Eventually(t, func() bool { return versionOf(t, s) == 1 }, time.Minute, time.Millisecond)
	})
}

// came is how many writes have come.
func (p *proxy) came() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes
}

// A process is stopped in its write until the run went on without it, and hears first
// what became of the write.
func TestFrozen(t *testing.T) {
	p, s := sea(t, mishapFrozen)
	frozen := make(chan int, 1)
	thawed := make(chan struct{})
	p.freeze = func(pid int) func() { frozen <- pid; return func() { close(thawed) } }
	first := make(chan error)
	go func() { first <- s.PutHead(t.Context(), headOf(1, 1, agent.StatusRunning)) }()
	require.Equal(t, os.Getpid(), <-frozen)
	require.NoError(t, s.PutHead(t.Context(), headOf(1, 1, agent.StatusRunning)))
	require.NoError(t, s.PutHead(t.Context(), headOf(2, 2, agent.StatusCompleted)))
	require.ErrorIs(t, <-first, agent.CodeStale)
	<-thawed
	require.Equal(t, map[mishap]int{mishapFrozen: 1}, p.mishaps)
	require.EqualValues(t, 2, versionOf(t, s))
}

// The same write of the same seed has the same mishap, whoever asks when.
func TestMishaps(t *testing.T) {
	seen := map[mishap]bool{}
	a, b := newProxy(nil, &plan{Seed: 3}), newProxy(nil, &plan{Seed: 3})
	for range 200 {
		h := headOf(2, 1, agent.StatusSuspended)
		w := &write{Op: putHead, Head: &h}
		m, l := a.choose(w)
		again, later := b.choose(w)
		require.Equal(t, m, again)
		require.Equal(t, l, later)
		seen[m] = true
	}
	require.Len(t, seen, len(unruly)+1, "every mishap, and none")
	a.calm.Store(true)
	for range 200 {
		m, _ := a.choose(&write{Op: putHead, Session: "s"})
		require.Equal(t, mishapNone, m)
	}
}

// careless is a store that takes any head, as one without versions and fences does.
type careless struct{ store.Store }

func (c careless) PutHead(ctx context.Context, h store.Head) error {
	stored, err := c.Head(ctx, h.Session)
	if err != nil && !errors.Is(err, agent.CodeNotFound) {
		return err
	}
	h.Version, h.Fence.Chain = stored.Version+1, max(h.Fence.Chain, stored.Fence.Chain+1)
	return c.Store.PutHead(ctx, h)
}

// Where a store does not refuse what comes late, ends of conversations are lost, and
// the audit tells.
func TestAStoreWithoutFencesIsFound(t *testing.T) {
	o := &options{
		seed: 11, lasts: 10 * time.Second, patience: 30 * time.Second, runs: 16, progress: io.Discard, keepServer: true,
		storeFault: func(s store.Store) store.Store { return careless{s} },
	}
	_, err := o.prepare(t.Context())
	require.NoError(t, err)
	r, err := o.run(t.Context())
	require.NoError(t, err)
	require.Positive(t, r.Late["put head made"])
	require.Positive(t, r.Harms[lost], "%v", r.Findings)
}
