package store

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// plantChunk puts a chunk with any envelope and content, and returns its name.
func plantChunk(t *testing.T, d *Dir, e Envelope, plain string) string {
	t.Helper()
	e.V = ChunkVersion
	name, data, err := wrap(&e, []byte(plain))
	require.NoError(t, err)
	require.NoError(t, d.PutChunk(t.Context(), name, data))
	return name
}

func one(seq int64) string { return fmt.Sprintf(`{"run":"r","events":[{"seq":%d}]}`, seq) }

// allocates tells how many bytes were allocated while something was done.
func allocates(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// An envelope that names more chunks than are read at once, or one of them again, is
// damaged: nothing that it names is read.
func TestAnEnvelopeNamesFewChunksOnce(t *testing.T) {
	var many, again []Ref
	for i := range wave + 1 {
		many = append(many, Ref{Chunk: ChunkPrefix("s") + ofChunk + digestOf(fmt.Append(nil, i)), First: int64(wave - i)})
		again = append(again, many[0])
	}
	for name, before := range map[string][]Ref{"too many": many, "again": again[:2], "a path": {{Chunk: ChunkPrefix("s") + "-/" + many[0].Chunk}}, "a size that is too large": {{Chunk: many[0].Chunk, Size: maxPlain + 1}}} {
		t.Run(name, func(t *testing.T) {
			d := open1(t)
			at := plantChunk(t, d, Envelope{Kind: kindEvents, Session: "s", First: 400, Last: 400, Before: before}, one(400))
			s := &reads{Dir: d}
			_, err := NewLog(s).View(t.Context(), at)
			require.ErrorIs(t, err, agent.CodeChunkDamaged)
			require.Equal(t, 1, s.n)
			_, _, err = NewLog(d).ChunkWith(t.Context(), at, 1)
			require.ErrorIs(t, err, agent.CodeChunkDamaged, "also by who reads envelopes alone")
		})
	}
}

// What is packed is unpacked up to the size that the envelope says.
func TestAChunkThatIsLargerThanItSaysIsNotUnpacked(t *testing.T) {
	d, large := open1(t), 32<<20
	plain := `{"run":"r","events":[]` + strings.Repeat(" ", large) + `}`
	for _, size := range []int{1, maxPlain + 1} {
		e := Envelope{V: ChunkVersion, Kind: kindEvents, Session: "s", Size: size, Content: digestOf([]byte(plain))}
		line, err := json.Marshal(e)
		require.NoError(t, err)
		name := ChunkPrefix("s") + ofChunk + digestOf(line)
		require.NoError(t, d.PutChunk(t.Context(), name, packer().EncodeAll([]byte(plain), append(line, '\n'))))
		_, _ = NewLog(d).View(t.Context(), name) // the decoder has its buffers from now on
		require.Less(t, allocates(func() {
			_, err := NewLog(d).View(t.Context(), name)
			require.ErrorIs(t, err, agent.CodeChunkDamaged)
		}), uint64(large/2), "an envelope that says %d bytes", size)
	}
}

// Chunks that are read at once wait for each other if together they are large.
func TestWhatIsUnpackedAtOnceIsBounded(t *testing.T) {
	unpacker() // outside of the bubble
	packer()
	synctest.Test(t, func(t *testing.T) {
		d := open1(t)
		l := NewLog(d)
		at := plantChunk(t, d, Envelope{Kind: kindEvents, Session: "s", First: 1, Last: 1}, one(1))
		blob, err := l.PutBlob(t.Context(), "s", []byte("[]"))
		require.NoError(t, err)
		require.NoError(t, l.room.Acquire(t.Context(), maxPlain))
		var done atomic.Int64
		go func() { _, err := l.View(t.Context(), at); require.NoError(t, err); done.Add(1) }()
		go func() { _, err := l.Blob(t.Context(), blob); require.NoError(t, err); done.Add(1) }()
		synctest.Wait()
		require.Zero(t, done.Load(), "there is no room")
		l.room.Release(maxPlain)
		synctest.Wait()
		require.EqualValues(t, 2, done.Load())
	})
}

// A chain that contradicts itself ends with the first wave that does.
func TestAChainThatContradictsItselfIsNotReadOn(t *testing.T) {
	d := open1(t)
	end := plantChunk(t, d, Envelope{Kind: kindEvents, Session: "s", First: 1, Last: 1}, one(1))
	second := plantChunk(t, d, Envelope{Kind: kindEvents, Session: "s", First: 2, Last: 2, Before: []Ref{{Chunk: end, First: 1}}}, one(2))
	other := plantChunk(t, d, Envelope{Kind: kindEvents, Session: "s", First: 3, Last: 3, Before: []Ref{{Chunk: end, First: 1}}}, one(3))
	at := plantChunk(t, d, Envelope{Kind: kindEvents, Session: "s", First: 4, Last: 4, Before: []Ref{{Chunk: other, First: 3}, {Chunk: second, First: 2}}}, one(4))
	read := map[string]bool{}
	h := &hooked{Dir: d}
	h.afterChunk = func(name string) {
		if name != other && name != second { // these two are read at once
			read[name] = true
		}
	}
	_, err := NewLog(h).View(t.Context(), at)
	require.ErrorIs(t, err, agent.CodeChunkDamaged)
	require.Equal(t, map[string]bool{at: true}, read)
}

// What waits for a daemon is read from few blobs, and not more than fits.
func TestAnInboxIsBounded(t *testing.T) {
	d := open1(t)
	l := NewLog(d)
	blob, err := l.PutBlob(t.Context(), "s", []byte("["+strings.Repeat(" ", maxPlain/3)+"]"))
	require.NoError(t, err)
	kept := []remembered.BacklogBlob{{Blob: blob}, {Blob: blob}}
	_, err = l.Backlog(t.Context(), Head{Session: "s", BacklogBlobs: kept})
	require.NoError(t, err)
	for name, kept := range map[string][]remembered.BacklogBlob{"in bytes": append(kept, kept...), "in blobs": make([]remembered.BacklogBlob, maxBlobs+1)} {
		_, err = l.Backlog(t.Context(), Head{Session: "s", BacklogBlobs: kept})
		require.ErrorIs(t, err, agent.CodeChunkDamaged, name)
	}
}
