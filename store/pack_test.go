package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A chain that is handed to another store is the same there, and what is not what
// its digest says is not handed on.
func TestAChainIsHandedOn(t *testing.T) {
	here, there := open1(t), open1(t)
	from := NewLog(here)
	first, err := from.Seal(t.Context(), "", "s", "r", false, events(1, "one"))
	require.NoError(t, err)
	p, err := from.Pack(t.Context(), first, "s", "r", events(2, "two"))
	require.NoError(t, err)
	last, data := p.Digest, p.Data
	var names []string
	for p, err := range from.Chain(t.Context(), last, p) {
		require.NoError(t, err)
		require.NoError(t, there.PutChunk(t.Context(), p.Digest, p.Data))
		names = append(names, p.Digest)
	}
	require.Equal(t, []string{last, first}, names)
	view, err := NewLog(there).View(t.Context(), last)
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two"}, texts(view))

	require.ErrorIs(t, NewSequence(first).Take(data), agent.CodeChunkDamaged)
	for _, err := range from.Chain(t.Context(), last) {
		require.ErrorIs(t, err, agent.CodeChunkMissing)
	}
}

// What an import has put belongs to the session until a run has gone on from it.
func TestWhatWasImportedIsNotCollected(t *testing.T) {
	s := open1(t)
	l := NewLog(s)
	last, err := l.Seal(t.Context(), "", "s", "r", false, events(1, "one"))
	require.NoError(t, err)
	blob, err := l.PutBlob(t.Context(), "s", []byte("signed"))
	require.NoError(t, err)
	require.NoError(t, s.PutHead(t.Context(), Head{V: 1, Version: 1, Session: "s", Digest: last, Imported: "e", Import: blob}))
	age(t, s)
	done, err := l.Collect(t.Context(), 0, false)
	require.NoError(t, err)
	require.Zero(t, done.Deleted)
	data, err := l.Blob(t.Context(), blob)
	require.NoError(t, err)
	require.Equal(t, "signed", string(data))
	_, err = l.Blob(t.Context(), last)
	require.ErrorIs(t, err, agent.CodeChunkDamaged, "a part of the log")

	gone, err := l.Delete(t.Context(), "s")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{last, blob}, gone.Chunks)
}
