package store

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// plant writes a file into a store's folder, as somebody does who has no use for Fermata.
func plant(t *testing.T, path string, data []byte) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

// plantHead writes a head into the place of a session.
func plantHead(t *testing.T, d *Dir, session string, h Head) {
	t.Helper()
	raw, err := json.Marshal(h)
	require.NoError(t, err)
	plant(t, d.head(session), raw)
}

func headOf(t *testing.T, s Store, session string) Head {
	t.Helper()
	h, err := s.Head(t.Context(), session)
	require.NoError(t, err)
	return h
}

// What has no name of an edge is named as a fault; collection and deletion go on.
func TestWhatIsNoEdgeHindersNobody(t *testing.T) {
	for name, edge := range map[string]string{
		"a tag alone": "~", "cut short": "~" + ChunkPrefix("x")[:8], "without a digest": "~" + ChunkPrefix("x") + "-", "too long": "~" + ChunkPrefix("x") + "-" + digestOf(nil) + "0",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, d := t.Context(), open1(t)
			lost := say(t, d, "victim", "a")
			require.NoError(t, d.DeleteHead(ctx, "victim", 1))
			say(t, d, "victim", "b")
			say(t, d, "other", "c")
			line, err := json.Marshal(Envelope{V: ChunkVersion, Kind: kindFork, Session: "x"})
			require.NoError(t, err)
			edge := ChunkPrefix("victim") + edge
			plant(t, d.chunk(edge), append(line, '\n'))
			age(t, d)

			done, err := NewLog(d).Collect(ctx, time.Minute, false)
			require.NoError(t, err)
			require.Equal(t, 1, done.Deleted)
			require.False(t, has(t, d, lost))
			require.Len(t, done.Faults, 1)
			require.Equal(t, edge, done.Faults[0].Chunk)
			require.Equal(t, agent.CodeChunkDamaged, done.Faults[0].Code)
			gone, err := NewLog(d).Delete(ctx, "victim")
			require.NoError(t, err)
			require.Len(t, gone.Chunks, 1)
			require.Equal(t, edge, gone.Faults[0].Chunk)
		})
	}
}

func TestAFolderAmongTheChunksHindersNobody(t *testing.T) {
	for name, at := range map[string]string{"as a chunk": "-" + digestOf(nil), "as an edge": "~" + ChunkPrefix("x") + "-" + digestOf(nil), "as nothing of ours": "-x"} {
		t.Run(name, func(t *testing.T) {
			ctx, d := t.Context(), open1(t)
			say(t, d, "s", "a")
			lost := say(t, d, "t", "b")
			require.NoError(t, d.DeleteHead(ctx, "t", 1))
			folder := ChunkPrefix("s") + at
			plant(t, filepath.Join(d.chunk(folder), "file"), nil)
			age(t, d)
			done, err := NewLog(d).Collect(ctx, 0, false)
			require.NoError(t, err)
			require.False(t, has(t, d, lost))
			require.Equal(t, 1, done.Deleted)
			if at != "-x" {
				require.Len(t, done.Faults, 1)
				require.Contains(t, done.Faults[0].Message, d.chunk(folder)+" is a folder")
			}
			gone, err := NewLog(d).Delete(ctx, "s")
			require.NoError(t, err)
			require.Len(t, gone.Faults, 1)
			require.ErrorIs(t, d.PutChunk(ctx, folder, []byte("x")), agent.CodeChunkDamaged, "it would not be stored")
		})
	}
}

// Names in a head are read and deleted by: what is no name, or another session's, is
// refused, before anything is deleted.
func TestAHeadWithNamesOfAnotherIsDamaged(t *testing.T) {
	ctx, d := t.Context(), open1(t)
	victim, mine := say(t, d, "victim", "secret"), say(t, d, "mine", "a")
	sane := headOf(t, d, "mine")
	path := victim[:tagDigits] + "-/" + victim
	for name, spoil := range map[string]func(h *Head){
		"an origin that is a path":        func(h *Head) { h.Origins = []Origin{{"victim", path, 1}} },
		"an origin of another session":    func(h *Head) { h.Origins = []Origin{{"third", victim, 1}} },
		"an origin that is an edge":       func(h *Head) { h.Origins = []Origin{{"victim", edgeName("mine", victim), 1}} },
		"a digest that is a path":         func(h *Head) { h.Digest = path },
		"a recent chunk that is a path":   func(h *Head) { h.Recent = append(h.Recent, Ref{Chunk: path}) },
		"a recent chunk that is repeated": func(h *Head) { h.Recent = append(h.Recent, h.Recent[0]) },
		"a base that is a path":           func(h *Head) { h.Knows = &Known{Chunk: path} },
		"a blob that is a path":           func(h *Head) { h.Blobs = []string{path} },
		"an inbox that is a path":         func(h *Head) { h.BacklogBlobs = []remembered.BacklogBlob{{Blob: path}} },
		"an inbox of too many blobs":      func(h *Head) { h.BacklogBlobs = make([]remembered.BacklogBlob, maxBlobs+1) },
		"an import that is a path":        func(h *Head) { h.Import = path },
		"a chain that can't be":           func(h *Head) { h.Fence.Chain = math.MaxInt64 },
	} {
		t.Run(name, func(t *testing.T) {
			h := sane
			spoil(&h)
			plantHead(t, d, "mine", h)
			_, err := NewLog(d).Head(ctx, "mine")
			require.ErrorIs(t, err, agent.CodeChunkDamaged)
			_, err = NewLog(d).Delete(ctx, "mine")
			require.ErrorIs(t, err, agent.CodeChunkDamaged)
			done, err := NewLog(d).Collect(ctx, 0, false)
			require.NoError(t, err)
			require.Zero(t, done.Deleted)
			require.Equal(t, "mine", done.Faults[0].Session)
			require.True(t, has(t, d, victim))
			require.True(t, has(t, d, mine))
		})
	}
}

func TestAFolderTakesNamesAndNoPaths(t *testing.T) {
	ctx, d := t.Context(), open1(t)
	victim := say(t, d, "victim", "a")
	for _, name := range []string{"", "a", "../x", victim[:tagDigits] + "-/" + victim, "..", "a/b", "ab/../" + victim, "AB", "a.b.c", strings.Repeat("a", 171)} {
		_, read := d.Chunk(ctx, name)
		_, start := d.ChunkStart(ctx, name, 10)
		_, gone := d.DeleteChunk(ctx, name, time.Now().Add(time.Hour))
		for _, err := range []error{d.PutChunk(ctx, name, nil), read, start, gone} {
			require.ErrorIs(t, err, agent.CodeInvalidInput, name)
		}
	}
	require.True(t, has(t, d, victim))
}

// A head counts for the session in whose place it stands.
func TestAHeadInAnothersPlaceIsDamaged(t *testing.T) {
	for name, victim := range map[string]string{"a short name": "victim", "a long name": strings.Repeat("v", 200)} {
		t.Run(name, func(t *testing.T) {
			ctx, d := t.Context(), open1(t)
			chunk := say(t, d, victim, "a")
			h := headOf(t, d, victim)
			h.Session = "other"
			plantHead(t, d, victim, h)
			age(t, d)
			_, err := d.Head(ctx, victim)
			require.ErrorIs(t, err, agent.CodeChunkDamaged)
			n := 0
			for h, err := range d.Heads(ctx, "") {
				n++
				require.ErrorIs(t, err, agent.CodeChunkDamaged)
				require.NotEqual(t, "other", h.Session)
			}
			require.Equal(t, 1, n)
			done, err := NewLog(d).Collect(ctx, 0, false)
			require.NoError(t, err)
			require.Zero(t, done.Deleted)
			require.Len(t, done.Faults, 1)
			require.True(t, has(t, d, chunk))
		})
	}
}

// After each fence that a store takes there is a higher one.
func TestAChainDoesNotJump(t *testing.T) {
	ctx, d := t.Context(), open1(t)
	l := NewLog(d)
	say(t, d, "s", "a")
	for _, session := range []string{"s", "new"} {
		h := Head{V: HeadVersion, Session: session, Version: 1, Fence: agent.Fence{Chain: math.MaxInt64}}
		if session == "s" {
			h = headOf(t, d, session)
			h.Version, h.Fence.Chain = h.Version+1, MaxChain+1
		}
		require.ErrorIs(t, d.PutHead(ctx, h), agent.CodeStale)
		_, err := l.PutHead(ctx, h)
		require.ErrorIs(t, err, agent.CodeInvalidInput)
	}
	h := headOf(t, d, "s")
	for range 3 {
		h.Version, h.Fence = h.Version+1, h.Fence.After(MaxChain)
		_, err := l.PutHead(ctx, h)
		require.NoError(t, err)
	}
	require.EqualValues(t, MaxChain+2, headOf(t, d, "s").Fence.Chain)
}
