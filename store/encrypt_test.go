package store_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/keyring"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite/conformance"
)

func newKey(t *testing.T, id string) string {
	t.Helper()
	key, err := keyring.New(id)
	require.NoError(t, err)
	return key
}

func ringOf(t *testing.T, keys ...string) *keyring.Ring {
	t.Helper()
	r, err := keyring.Parse(strings.Join(keys, ","))
	require.NoError(t, err)
	return r
}

func openDir(t *testing.T, root string) *store.Dir {
	t.Helper()
	d, err := store.OpenDir(root, nil)
	require.NoError(t, err)
	return d
}

func TestAnEncryptedStoreIsAStore(t *testing.T) {
	ring := ringOf(t, newKey(t, "k2"), newKey(t, "k1"))
	conformance.Store(t, func(t *testing.T) store.Store { return store.Encrypt(openDir(t, t.TempDir()), ring) })
}

// secret stands in a session's messages and in its head.
const secret = "the blue door, twice"

// session writes one of two chunks, and returns the digest of its end.
func session(t *testing.T, s store.Store, name string) string {
	t.Helper()
	ctx, l := context.Background(), store.NewLog(s)
	m := agent.TextMessage(agent.RoleUser, secret)
	first, err := l.Seal(ctx, "", name, "r", false, []agent.Event{{Seq: 1, Type: agent.EventMessage, Message: &m}})
	require.NoError(t, err)
	second, err := l.Seal(ctx, first, name, "r", false, []agent.Event{{Seq: 2, Type: agent.EventMessage, Message: &m}})
	require.NoError(t, err)
	put(t, s, name, 1, second)
	return second
}

func put(t *testing.T, s store.Store, name string, version int64, digest string) {
	t.Helper()
	require.NoError(t, s.PutHead(t.Context(), store.Head{
		V: 1, Version: version, Session: name, Digest: digest, Seq: 2, Updated: time.Unix(0, 0).UTC(),
		Receipts: []remembered.Receipt{{ID: secret}},
	}))
}

// whole reads a session's messages.
func whole(t *testing.T, s store.Store, name string) []string {
	t.Helper()
	l := store.NewLog(s)
	h, err := l.Head(t.Context(), name)
	require.NoError(t, err)
	v, err := l.View(t.Context(), h.Digest)
	require.NoError(t, err)
	var texts []string
	for _, m := range v.Messages() {
		texts = append(texts, m.Text())
	}
	return texts
}

// lies returns all that lies in a folder, names and content.
func lies(t *testing.T, root string) string {
	t.Helper()
	var all bytes.Buffer
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all.WriteString(path + "\n")
		all.Write(data)
		return err
	}))
	return all.String()
}

func TestNothingPlainLiesInAnEncryptedStore(t *testing.T) {
	root, ring := t.TempDir(), ringOf(t, newKey(t, "k1"))
	session(t, store.Encrypt(openDir(t, root), ring), "trip-42")
	require.NotContains(t, lies(t, root), secret)
	require.Equal(t, []string{secret, secret}, whole(t, store.Encrypt(openDir(t, root), ring), "trip-42"))

	for name, other := range map[string]*keyring.Ring{"without a key": nil, "with another key": ringOf(t, newKey(t, "k2"))} {
		l := store.NewLog(store.Encrypt(openDir(t, root), other))
		_, err := l.Head(t.Context(), "trip-42")
		require.ErrorIs(t, err, agent.CodeNotSetUp, name)
		require.Contains(t, err.Error(), "the head of session trip-42 can't be read: it is encrypted with key k1", name)
		for _, err := range l.Store().Heads(t.Context(), "") {
			require.ErrorIs(t, err, agent.CodeNotSetUp, name)
		}
		_, err = l.Collect(t.Context(), 0, false)
		require.ErrorIs(t, err, agent.CodeNotSetUp, "%s: what can't be read is not collected", name)
	}
	_, err := store.NewLog(openDir(t, root)).Head(t.Context(), "trip-42")
	require.ErrorIs(t, err, agent.CodeNotSetUp, "also where nobody has thought of keys")
}

// Who can write where the store lies can't make one session another, nor bring an
// older head back under a newer number.
func TestWhatIsSwappedIsNoticed(t *testing.T) {
	root, ring := t.TempDir(), ringOf(t, newKey(t, "k1"))
	dir := openDir(t, root)
	s := store.Encrypt(dir, ring)
	digest := session(t, s, "trip-42")
	put(t, s, "trip-43", 1, digest)

	theirs, err := dir.Head(t.Context(), "trip-42")
	require.NoError(t, err)
	theirs.Session, theirs.Version = "trip-43", 2
	require.NoError(t, dir.PutHead(t.Context(), theirs))
	_, err = s.Head(t.Context(), "trip-43")
	require.ErrorIs(t, err, agent.CodeChunkDamaged)

	older, err := dir.Head(t.Context(), "trip-42")
	require.NoError(t, err)
	put(t, s, "trip-42", 2, digest)
	older.Version = 3
	require.NoError(t, dir.PutHead(t.Context(), older))
	_, err = s.Head(t.Context(), "trip-42")
	require.ErrorIs(t, err, agent.CodeChunkDamaged)
	require.Contains(t, err.Error(), "it was version 1 but is stored as version 3")
}

// A writer without a key neither brings back an older end of a session nor makes a
// session say what nobody said.
func TestWhatIsPlainIsRefusedUnderKeys(t *testing.T) {
	ctx, root := t.Context(), t.TempDir()
	dir := openDir(t, root)
	s := store.Encrypt(dir, ringOf(t, newKey(t, "k1")))
	digest := session(t, s, "trip-42")
	prev := ""
	for c, err := range store.NewLog(s).Chain(ctx, digest) {
		require.NoError(t, err)
		prev = c.Digest
	}
	older := store.Head{V: 1, Version: 2, Session: "trip-42", Digest: prev, Seq: 1, Status: agent.StatusCompleted}
	require.NoError(t, dir.PutHead(ctx, older))
	_, err := store.NewLog(s).Head(ctx, "trip-42")
	require.ErrorIs(t, err, agent.CodeChunkDamaged)
	for h, err := range s.Heads(ctx, "") {
		require.Equal(t, "trip-42", h.Session)
		require.ErrorIs(t, err, agent.CodeChunkDamaged)
	}
	checked, err := store.NewLog(s).Check(ctx)
	require.NoError(t, err)
	require.Len(t, checked.Faults, 1)
	done, err := store.NewLog(s).Collect(ctx, 0, false)
	require.NoError(t, err)
	require.Zero(t, done.Deleted, "what it needs is not known")

	forged := session(t, store.Encrypt(dir, nil), "trip-43")
	for _, read := range []func() error{
		func() error { _, err := s.Chunk(ctx, forged); return err },
		func() error { _, err := s.ChunkStart(ctx, forged, 100); return err },
		func() error { _, err := store.NewLog(s).View(ctx, forged); return err },
	} {
		require.ErrorIs(t, read(), agent.CodeChunkDamaged)
	}
	data, err := dir.Chunk(ctx, forged)
	require.NoError(t, err)
	require.NoError(t, dir.PutChunk(ctx, forged+".k1", data))
	_, err = s.Chunk(ctx, forged)
	require.ErrorIs(t, err, agent.CodeChunkDamaged, "also under the name of a key")
	_, err = s.Chunk(ctx, digest)
	require.NoError(t, err)
}

func TestRekey(t *testing.T) {
	ctx, root := t.Context(), t.TempDir()
	k1, k2 := newKey(t, "k1"), newKey(t, "k2")
	plain, old := store.Encrypt(openDir(t, root), nil), store.Encrypt(openDir(t, root), ringOf(t, k1))
	session(t, plain, "plain")
	session(t, old, "old")
	_, err := plain.Rekey(ctx, nil)
	require.ErrorIs(t, err, agent.CodeNotSetUp)
	_, err = store.Encrypt(openDir(t, root), ringOf(t, k2)).Rekey(ctx, nil)
	require.ErrorIs(t, err, agent.CodeNotSetUp, "what the ring can't read stays as it is")

	now := store.Encrypt(openDir(t, root), ringOf(t, k2, k1))
	done, err := now.Rekey(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, store.RekeyResult{Key: "k2", Chunks: 2, Heads: 1, Plain: 3}, done, "who wrote what is plain is not believed")
	_, err = now.Head(ctx, "plain")
	require.ErrorIs(t, err, agent.CodeChunkDamaged)
	require.Contains(t, err.Error(), "fermata store rekey --plain")
	done, err = now.Rekey(ctx, &store.RekeyOptions{Plain: true})
	require.NoError(t, err)
	require.Equal(t, store.RekeyResult{Key: "k2", Chunks: 2, Heads: 1}, done)
	require.NotContains(t, lies(t, root), secret)
	require.NotContains(t, lies(t, root), ".k1")
	done, err = now.Rekey(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, store.RekeyResult{Key: "k2"}, done, "all of it is done")

	alone := store.Encrypt(openDir(t, root), ringOf(t, k2)) // the old key is thrown away
	for _, name := range []string{"plain", "old"} {
		require.Equal(t, []string{secret, secret}, whole(t, alone, name))
	}
	collected, err := store.NewLog(alone).Collect(ctx, 0, true)
	require.NoError(t, err)
	require.Equal(t, store.CollectResult{Sessions: 2, Chunks: 4}, collected)
}
