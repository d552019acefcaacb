package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// memoryOf returns a memory that its owner has in a store.
func memoryOf(t testing.TB, l *store.Log, principal, name string) *store.Memory {
	t.Helper()
	m, err := l.Memory(store.MemoryOwner{Principal: principal, Agent: name})
	require.NoError(t, err)
	return m
}

// appends is a change that adds a line to a file.
func appends(key, path, line string) store.MemoryChange {
	return store.MemoryChange{Key: key, Session: "s", Edit: func(ctx context.Context, e *store.MemoryEdit) (string, error) {
		text := ""
		if f, ok := e.Find(path); ok {
			var err error
			if text, err = e.Read(ctx, f); err != nil {
				return "", err
			}
		}
		return "added " + line, e.Write(ctx, path, text+line+"\n")
	}}
}

// contentOf returns the content of a memory's file; empty if there is none.
func contentOf(t testing.TB, m *store.Memory, path string) string {
	t.Helper()
	files, _, err := m.List(t.Context())
	require.NoError(t, err)
	for _, f := range files {
		if f.Path == path {
			text, err := m.Read(t.Context(), f)
			require.NoError(t, err)
			return text
		}
	}
	return ""
}

// Writers in several processes, each with a log of its own, change one file. Each makes its changes
// twice, as after a crash, and each is there once.
func memoryLosesNothing(t testing.TB, s store.Store) {
	const writers, each = 4, 4
	errs := make([]error, writers)
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			m, err := store.NewLog(s).Memory(store.MemoryOwner{Principal: "ana", Agent: "clerk"})
			for i := 0; i < each*2 && err == nil; i++ {
				line := fmt.Sprintf("line %d-%d", w, i/2)
				var said string
				if said, err = m.Change(t.Context(), appends(line, "/memories/a.md", line)); err == nil && said != "added "+line {
					err = fmt.Errorf("a change was said to be %q", said)
				}
				if agent.CodeOf(err) == agent.CodeStoreUnavailable { // as an activity does
					i, err = i-1, nil
				}
			}
			errs[w] = err
		})
	}
	wait.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	text := contentOf(t, memoryOf(t, store.NewLog(s), "ana", "clerk"), "/memories/a.md")
	for w := range writers {
		for i := range each {
			require.Equal(t, 1, strings.Count(text, fmt.Sprintf("line %d-%d\n", w, i)), text)
		}
	}
}

// Whatever a principal is called, a memory is that principal's and that agent's alone. A collection
// keeps it, and it can be deleted whole.
func memoryIsItsOwners(t testing.TB, s store.Store) {
	l := store.NewLog(s)
	names := []string{"ana", "ANA", "ana/clerk", "../ana", "ana\x00", "%2e%2e", "a\u0301na", "ána", "_memory/", strings.Repeat("a", 300)}
	for i, principal := range names {
		_, err := memoryOf(t, l, principal, "clerk").Change(t.Context(), appends("", "/memories/a.md", fmt.Sprint(i)))
		require.NoError(t, err, "%q", principal)
	}
	_, err := memoryOf(t, l, "ana", "other").Change(t.Context(), appends("", "/memories/a.md", "other"))
	require.NoError(t, err)
	_, err = l.Collect(t.Context(), 0, false)
	require.NoError(t, err)
	for i, principal := range names {
		require.Equal(t, fmt.Sprint(i)+"\n", contentOf(t, memoryOf(t, l, principal, "clerk"), "/memories/a.md"), "%q", principal)
	}
	var own []string
	for o, err := range l.Memories(t.Context(), "ana") {
		require.NoError(t, err)
		own = append(own, o.Principal+" "+o.Agent)
	}
	require.Equal(t, []string{"ana clerk", "ana other"}, own)
	m := memoryOf(t, l, "ana", "clerk")
	require.NoError(t, m.Delete(t.Context()))
	require.NoError(t, m.Delete(t.Context()), "it is gone")
	require.Empty(t, contentOf(t, m, "/memories/a.md"))
	require.Equal(t, "1\n", contentOf(t, memoryOf(t, l, "ANA", "clerk"), "/memories/a.md"))
	_, err = m.Change(t.Context(), appends("", "/memories/b.md", "anew"))
	require.NoError(t, err, "a memory begins anew after its deletion")
	require.Equal(t, "anew\n", contentOf(t, m, "/memories/b.md"))
	found, err := l.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Faults)
	require.Zero(t, found.Sessions, "a memory is no session")
}
