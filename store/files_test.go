package store

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/keyring"
)

// shows adds a message with a file to a session, and returns the name of its chunk.
func shows(t *testing.T, s Store, session string, f *agent.File) string {
	t.Helper()
	h, err := s.Head(t.Context(), session)
	if err != nil {
		require.ErrorIs(t, err, agent.CodeNotFound)
		h = Head{Session: session}
	}
	m := agent.Message{Role: agent.RoleUser, Parts: []agent.Part{{Type: agent.PartFile, File: f}}}
	e := agent.Event{Seq: h.Seq + 1, Type: agent.EventMessage, Message: &m}
	name, err := NewLog(s).Seal(t.Context(), h.Digest, session, "r", false, []agent.Event{e})
	require.NoError(t, err)
	h.V, h.Version, h.Digest, h.Seq = HeadVersion, h.Version+1, name, e.Seq
	h.Fence = agent.Fence{Chain: 1, N: h.Fence.N + 1}
	_, err = NewLog(s).PutHead(t.Context(), h)
	require.NoError(t, err)
	return name
}

func keep(t *testing.T, s Store, session, name, data string) *agent.File {
	t.Helper()
	f, err := NewLog(s).PutFile(t.Context(), session, name, "text/plain", []byte(data))
	require.NoError(t, err)
	return f
}

func there(t *testing.T, s Store, f *agent.File) bool {
	t.Helper()
	_, err := NewLog(s).File(t.Context(), f)
	if err != nil {
		require.ErrorIs(t, err, agent.CodeChunkMissing)
	}
	return err == nil
}

// Bytes are stored once in a session, under whatever name they come, and read back as they
// were; with keys, nobody finds them in the store.
func TestAFileIsStoredOnce(t *testing.T) {
	key, err := keyring.New("k1")
	require.NoError(t, err)
	ring, err := keyring.Parse(key)
	require.NoError(t, err)
	plain := open1(t)
	for _, s := range []Store{plain, Encrypt(open1(t), ring)} {
		a, b := keep(t, s, "s", "a.txt", "the same canary"), keep(t, s, "s", "b.txt", "the same canary")
		require.NotEqual(t, a.Name, b.Name)
		require.Len(t, digests(t, s), 1)
		other := keep(t, s, "s2", "a.txt", "the same canary")
		require.Len(t, digests(t, s), 2, "what is deleted with a session is not another's")
		for _, f := range []*agent.File{a, b, other} {
			data, err := NewLog(s).File(t.Context(), f)
			require.NoError(t, err)
			require.Equal(t, "the same canary", string(data))
		}
	}
	l := NewLog(plain)
	for _, f := range []agent.File{
		{}, {Session: "s", Digest: "../../etc/passwd", Size: 3, MediaType: "text/plain"},
		{Session: "../s", Digest: digestOf(nil), Size: 3, MediaType: "text/plain"},
		{Session: "s", Digest: digestOf(nil), Size: agent.MaxFile + 1, MediaType: "text/plain"},
		{Session: "s", Digest: digestOf(nil), Size: 3, MediaType: "text/plain; charset=x"},
	} {
		_, err := l.File(t.Context(), &f)
		require.ErrorIs(t, err, agent.CodeInvalidInput, "%+v", f)
	}
	_, err = l.File(t.Context(), &agent.File{Session: "s", Digest: digestOf([]byte("x")), Size: 1, MediaType: "text/plain", Name: "x.txt"})
	require.ErrorIs(t, err, agent.CodeChunkMissing)
	require.ErrorContains(t, err, "x.txt")
}

// A file that no log mentions yet waits for its message; one that a log mentions stays.
func TestWhenAFileIsCollected(t *testing.T) {
	d := open1(t)
	used, waits, old := keep(t, d, "s", "", "used"), keep(t, d, "s", "", "waits"), keep(t, d, "s", "", "old")
	early := keep(t, d, "not-begun", "", "early")
	shows(t, d, "s", used)
	for range 20 { // its chunk is merged
		say(t, d, "s", "more")
	}
	age(t, d)
	name, err := fileChunk(old)
	require.NoError(t, err)
	then := time.Now().Add(-UnusedFile - 2*time.Hour)
	require.NoError(t, os.Chtimes(d.chunk(name), then, then))
	done, err := NewLog(d).Collect(t.Context(), time.Minute, false)
	require.NoError(t, err)
	require.Empty(t, done.Faults)
	require.Equal(t, []bool{true, true, false, true}, []bool{there(t, d, used), there(t, d, waits), there(t, d, old), there(t, d, early)})
}

// A file goes with the last session that shows it.
func TestAFileIsDeletedWithItsSession(t *testing.T) {
	d := open1(t)
	l := NewLog(d)
	shown, alone := keep(t, d, "s", "", "shown"), keep(t, d, "s", "", "alone")
	shows(t, d, "s", shown)
	fork(t, d, "s", "f")
	shows(t, d, "s", alone)
	gone, err := l.Delete(t.Context(), "s")
	require.NoError(t, err)
	name, err := fileChunk(alone)
	require.NoError(t, err)
	require.Contains(t, gone.Chunks, name)
	require.Equal(t, []bool{true, false}, []bool{there(t, d, shown), there(t, d, alone)})
	_, err = l.Delete(t.Context(), "f")
	require.NoError(t, err)
	require.Empty(t, digests(t, d))
}

// A copy of a session has its files, each once, also those that a fork took over.
func TestFilesAreCopiedWithTheirSession(t *testing.T) {
	from, to := open1(t), open1(t)
	f := keep(t, from, "s", "a", "bytes")
	shows(t, from, "s", f)
	last := shows(t, from, "s", f)
	n := 0
	for p, err := range NewLog(from).Chain(t.Context(), last) {
		require.NoError(t, err)
		require.NoError(t, to.PutChunk(t.Context(), p.Digest, p.Data))
		n++
	}
	require.Equal(t, 3, n)
	require.True(t, there(t, to, f))

	name, err := fileChunk(f)
	require.NoError(t, err)
	_, err = from.DeleteChunk(t.Context(), name, time.Now().Add(time.Hour))
	require.NoError(t, err)
	found, err := NewLog(from).Check(t.Context())
	require.NoError(t, err)
	require.Len(t, found.Faults, 1)
	require.Equal(t, name, found.Faults[0].Chunk)
	// A log is whole without a file.
	bare := open1(t)
	for p, err := range NewLog(from).Chain(t.Context(), last) {
		require.NoError(t, err)
		require.Equal(t, p.Digest == name, len(p.Data) == 0)
		if len(p.Data) > 0 {
			require.NoError(t, bare.PutChunk(t.Context(), p.Digest, p.Data))
		}
	}
	_, err = NewLog(bare).View(t.Context(), last)
	require.NoError(t, err)
}

// Files of messages that wait come first, each once, also if the log shows them later.
func TestFilesThatWaitAreCopied(t *testing.T) {
	from := open1(t)
	f, waits := keep(t, from, "s", "a", "bytes"), keep(t, from, "s", "b", "others")
	last := shows(t, from, "s", f)
	var names, want []string
	for p, err := range NewLog(from).Copy(t.Context(), NewSequence(last, waits, f, waits)) {
		require.NoError(t, err)
		names = append(names, p.Digest)
	}
	for _, f := range []*agent.File{waits, f} {
		name, err := fileChunk(f)
		require.NoError(t, err)
		want = append(want, name)
	}
	require.Equal(t, append(want, last), names)
}

// Whoever writes to the store can't show a file that no envelope names, and no chunk is written that
// nobody reads.
func TestAChunkNamesItsFiles(t *testing.T) {
	f := &agent.File{Session: "victim", Digest: digestOf([]byte("x")), Size: 1, MediaType: "text/plain"}
	show := func(f *agent.File, seq int64) agent.Event {
		return agent.Event{Seq: seq, Type: agent.EventMessage, Message: &agent.Message{Role: agent.RoleUser, Parts: []agent.Part{{Type: agent.PartFile, File: f}}}}
	}
	plain, err := json.Marshal(content{Run: "r", Events: []agent.Event{show(f, 1)}})
	require.NoError(t, err)
	name, data, err := wrap(&Envelope{V: ChunkVersion, Kind: kindEvents, Session: "s", First: 1, Last: 1}, plain)
	require.NoError(t, err)
	_, err = open(name, data)
	require.ErrorIs(t, err, agent.CodeChunkDamaged)

	var many []agent.Event
	for n := range int64(maxFiles + 1) {
		many = append(many, show(&agent.File{Session: "s", Digest: digestOf([]byte{byte(n), byte(n >> 8)}), Size: 1, MediaType: "text/plain"}, n+1))
	}
	l := NewLog(open1(t))
	_, err = l.Seal(t.Context(), "", "s", "r", false, many)
	require.ErrorIs(t, err, agent.CodeTooLarge)
	name, err = l.Seal(t.Context(), "", "s", "r", false, many[:maxFiles])
	require.NoError(t, err)
	_, err = NewLog(l.Store()).View(t.Context(), name)
	require.NoError(t, err)
}
