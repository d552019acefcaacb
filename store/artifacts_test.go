package store

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// saves adds a version of an artifact to a session.
func saves(t *testing.T, s Store, session string, a agent.Artifact) {
	t.Helper()
	h, err := s.Head(t.Context(), session)
	if err != nil {
		require.ErrorIs(t, err, agent.CodeNotFound)
		h = Head{Session: session}
	}
	e := agent.Event{Seq: h.Seq + 1, Type: agent.EventArtifactSaved, Artifact: &a}
	name, err := NewLog(s).Seal(t.Context(), h.Digest, session, "r", false, []agent.Event{e})
	require.NoError(t, err)
	h.V, h.Version, h.Digest, h.Seq = HeadVersion, h.Version+1, name, e.Seq
	h.Fence = agent.Fence{Chain: 1, N: h.Fence.N + 1}
	_, err = NewLog(s).PutHead(t.Context(), h)
	require.NoError(t, err)
}

// The log names the bytes of each version: a collection keeps them, whatever their age, also when chunks
// are merged, and a fork keeps those of the part that it shares.
func TestArtifactsAreKeptAsTheLogIs(t *testing.T) {
	d := open1(t)
	one, two, behind := keep(t, d, "s", "report.md", "one"), keep(t, d, "s", "report.md", "two"), keep(t, d, "s", "report.md", "behind")
	unused := keep(t, d, "s", "report.md", "unused")
	saves(t, d, "s", agent.Artifact{File: *one, Version: 1, Run: "r"})
	saves(t, d, "s", agent.Artifact{File: *two, Version: 2, Run: "r"})
	fork(t, d, "s", "f")
	saves(t, d, "s", agent.Artifact{File: *behind, Version: 3, Run: "r"})
	for range 20 {
		say(t, d, "s", "more")
	}
	age(t, d)
	long := time.Now().Add(-UnusedFile - 2*time.Hour)
	for _, f := range []*agent.File{one, two, behind, unused} {
		name, err := fileChunk(f)
		require.NoError(t, err)
		require.NoError(t, os.Chtimes(d.chunk(name), long, long))
	}
	done, err := NewLog(d).Collect(t.Context(), time.Minute, false)
	require.NoError(t, err)
	require.Empty(t, done.Faults)
	require.Equal(t, []bool{true, true, true, false}, []bool{there(t, d, one), there(t, d, two), there(t, d, behind), there(t, d, unused)})
	_, err = NewLog(d).Delete(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, []bool{true, true, false}, []bool{there(t, d, one), there(t, d, two), there(t, d, behind)})
	_, err = NewLog(d).Delete(t.Context(), "f")
	require.NoError(t, err)
	require.Empty(t, digests(t, d))
}
