package export

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"iter"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

var (
	now     = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	signers = map[string]signals.Signer{"old": signer("old", 1), "new": signer("new", 2)}
	keys    = signals.Keys{"old": signers["old"].Keys()["old"], "new": signers["new"].Keys()["new"], "none": nil}
)

// signer is the same in every process.
func signer(id string, seed byte) signals.Signer {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32))
	s, err := signals.ParseSigner(id + ":" + base64.StdEncoding.EncodeToString(key))
	if err != nil {
		panic(err)
	}
	return s
}

// chain makes chunks and returns them from the last to the first.
func chain(t require.TestingT, texts ...string) (out []store.Packed) {
	folder, err := os.MkdirTemp("", "export")
	require.NoError(t, err)
	defer os.RemoveAll(folder)
	dir, err := store.OpenDir(folder, nil)
	require.NoError(t, err)
	log, prev := store.NewLog(dir), ""
	for i, text := range texts {
		m := agent.TextMessage(agent.RoleUser, text)
		digest, err := log.Seal(context.Background(), prev, "s", "r", false, []agent.Event{{Seq: int64(i + 1), Type: agent.EventMessage, Message: &m}})
		require.NoError(t, err)
		data, err := log.Store().Chunk(context.Background(), digest)
		require.NoError(t, err)
		out = append([]store.Packed{{Digest: digest, Data: data}}, out...)
		prev = digest
	}
	return out
}

// packed packs what follows nothing.
func packed(_, session, run string, events []agent.Event) (store.Packed, error) {
	return store.NewLog(nil).Pack(context.Background(), "", session, run, events)
}

func all(chunks []store.Packed) iter.Seq2[store.Packed, error] {
	return func(yield func(store.Packed, error) bool) {
		for _, p := range chunks {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func file(t require.TestingT, c Content, chunks []store.Packed) []byte {
	c.Head.Digest = ""
	if len(chunks) > 0 {
		c.Head.Digest = chunks[0].Digest
	}
	var out bytes.Buffer
	n, err := Write(&out, c, signers[c.Key], all(chunks))
	require.NoError(t, err)
	require.Equal(t, len(chunks), n)
	return out.Bytes()
}

func sample(key string) Content {
	h := store.Head{V: 1, Session: "s", Run: "r", Agent: "a", Status: agent.StatusSuspended, Seq: 3, Counters: remembered.Counters{Request: 7}, Updated: now}
	c := Content{Head: h, State: json.RawMessage(`{"v":1,"text":"é"}`)}
	return c.Stamp(key, now, time.Hour)
}

// The head of a live run's export has what waits for it, and the ids of what it took.
func TestALiveExportHasWhatWaits(t *testing.T) {
	waits := []agent.EmitCommand{{CommandHeader: agent.CommandHeader{ID: "e-1"}, Topic: "t"}}
	raw, err := json.Marshal(loop.State{
		V: 1, Session: "s", Run: "r", Phase: loop.RunActive, Suspensions: loop.Suspensions{Open: &loop.OpenSuspension{AtRest: true, Published: true}}, Park: &loop.Park{Idle: true},
		Spec:     &agent.Spec{Definition: agent.Definition{Name: "a", Daemon: &agent.Daemon{}}},
		Messages: loop.Messages{Receipts: []remembered.Receipt{{ID: "e-1", Run: "r"}}, Emitted: waits}, Daemon: loop.Daemon{HasWork: true},
	})
	require.NoError(t, err)
	c, _, err := Live(raw, packed)
	require.NoError(t, err)
	require.Equal(t, remembered.Backlog{Unfinished: true, Events: waits}, c.Head.Backlog)
	require.Equal(t, []remembered.Receipt{{ID: "e-1", Run: "r"}}, c.Head.Receipts)
}

// What is written is read, and may be read again (PA-10).
func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, key := range []string{"old", "new"} {
		c, chunks := sample(key), chain(t, "one", "two", "three")
		f, err := Read(bytes.NewReader(file(t, c, chunks)), keys)
		require.NoError(t, err)
		c.Head.Digest = chunks[0].Digest
		require.Equal(t, c, f.Content)
		for range 2 { // it may be read again
			var got []store.Packed
			for p, err := range f.Chunks() {
				require.NoError(t, err)
				got = append(got, p)
			}
			require.Equal(t, chunks, got)
		}
		alone, err := Open(f.Envelope, keys)
		require.NoError(t, err)
		require.Equal(t, f.Content, alone, "a worker sees the envelope alone")
	}
}

// Whatever byte is changed, added or taken away, nothing is made of the file
// (PA-15, PA-19).
func TestTampered(t *testing.T) {
	whole := file(t, sample("new"), chain(t, "one", "two"))
	refused := func(data []byte, what string, at int) {
		t.Helper()
		_, err := Read(bytes.NewReader(data), keys)
		want := agent.CodeBadSignature
		if !strings.HasPrefix(string(data), begins) {
			want = agent.CodeInvalidInput // it does not even look like one
		}
		require.ErrorIs(t, err, want, "%s at %d of %d", what, at, len(whole))
	}
	for at := range whole {
		for _, bit := range []byte{1, 0x20, 0x80} {
			changed := bytes.Clone(whole)
			changed[at] ^= bit
			refused(changed, "changed", at)
		}
		refused(whole[:at], "cut", at)
		refused(append(append(bytes.Clone(whole[:at]), ' '), whole[at:]...), "blank", at)
	}
	refused(append(bytes.Clone(whole), '\n'), "added", len(whole))
	lines := bytes.SplitAfter(whole, []byte("\n"))
	refused(bytes.Join([][]byte{lines[0], lines[2], lines[1], lines[3]}, nil), "chunks swapped", 0)
	refused(bytes.Join([][]byte{lines[0], lines[1], lines[3]}, nil), "chunk left out", 0)

	other := bytes.SplitAfter(file(t, sample("new"), chain(t, "one", "two")), []byte("\n"))
	refused(bytes.Join([][]byte{other[0], lines[1], lines[2], lines[3]}, nil), "envelope of another export", 0)
}

// Every field of the envelope is covered, also where no file is around it (PA-15,
// PA-19).
func TestTamperedEnvelope(t *testing.T) {
	c := sample("new")
	c.Suspension = &agent.Suspension{ID: "s-3"}
	line, err := Seal(c, signers[c.Key])
	require.NoError(t, err)
	for _, f := range []struct{ from, to string }{
		{`"v":1`, `"v":0`}, {c.ID, "f" + c.ID[1:]}, {`"key":"new"`, `"key":"old"`}, {"2026-11-21T09", "2027-11-21T09"}, {`"session":"s"`, `"session":"t"`},
		{`"run":"r"`, `"run":"q"`}, {`"agent":"a"`, `"agent":"b"`}, {`"seq":3`, `"seq":4`}, {`"text":`, `"task":`}, {`"s-3"`, `"s-4"`},
		{`"content":{`, `"content":{"x":1,`}, {`"signature":"`, `"signature":"0`},
	} {
		changed := bytes.Replace(line, []byte(f.from), []byte(f.to), 1)
		require.NotEqual(t, string(line), string(changed), f.from)
		_, err := Open(changed, keys)
		require.ErrorIs(t, err, agent.CodeBadSignature, "%s became %s", f.from, f.to)
	}
}

// A key signs that is there, is not in the file, and counts only while its public one is
// listed. Who verifies has nothing to sign with (PA-11, PA-20, PA-79).
func TestKeys(t *testing.T) {
	_, err := Write(&bytes.Buffer{}, sample("old"), signals.Signer{}, all(nil))
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	whole := file(t, sample("old"), nil)
	_, err = Read(bytes.NewReader(whole), signals.Keys{"new": keys["new"]})
	require.ErrorIs(t, err, agent.CodeBadSignature, "the key was taken out of the list")
	_, err = Read(bytes.NewReader(whole), signals.Keys{"old": keys["new"]})
	require.ErrorIs(t, err, agent.CodeBadSignature, "a foreign key has the same name")
	_, err = Read(bytes.NewReader(whole), nil)
	require.ErrorIs(t, err, agent.CodeBadSignature)
	for _, s := range signers {
		require.NotContains(t, string(whole), s.Private()[4:])
	}
	// A signature that another key of ours made, in the name of the first.
	var forged bytes.Buffer
	_, err = Write(&forged, sample("old"), signers["new"], all(nil))
	require.NoError(t, err)
	_, err = Read(bytes.NewReader(forged.Bytes()), keys)
	require.ErrorIs(t, err, agent.CodeBadSignature)
}

// An age that is exactly the maximum is taken, one above it is not, and none at
// all has no end (PA-16, PA-17).
func TestAge(t *testing.T) {
	c := sample("new")
	require.NoError(t, c.Fresh(now.Add(time.Hour)), "the last moment counts")
	require.ErrorIs(t, c.Fresh(now.Add(time.Hour+time.Millisecond)), agent.CodeExpired)
	c = c.Stamp("new", now, 0)
	require.True(t, c.Expires.IsZero())
	require.NoError(t, c.Fresh(now.AddDate(100, 0, 0)))
}

// A file of a newer format is refused (HL-43).
func TestNewer(t *testing.T) {
	c := sample("new")
	c.V = Version + 1
	line, err := Seal(c, signers[c.Key])
	require.NoError(t, err)
	_, err = Open(line, keys)
	require.ErrorIs(t, err, agent.CodeIncompatible)
	_, _, err = Live(json.RawMessage(`{"v":2}`), packed)
	require.ErrorIs(t, err, agent.CodeIncompatible)
	_, _, err = Live(json.RawMessage(`{"v":"one"}`), packed)
	require.ErrorIs(t, err, agent.CodeIncompatible)
}

// A state that is too long for a history is not taken, whoever signed it.
func TestAStateThatIsTooLong(t *testing.T) {
	c := sample("new")
	c.State = json.RawMessage(`{"v":1,"session":"` + strings.Repeat("x", maxState) + `"}`)
	_, err := c.Machine()
	require.ErrorIs(t, err, agent.CodeTooLarge)
}

// A planted file is bounded before it is read: no line is kept that is longer than
// any of ours.
func TestPlanted(t *testing.T) {
	_, err := Read(strings.NewReader(begins+strings.Repeat("x", maxEnvelope)), keys)
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	_, err = Read(strings.NewReader(""), keys)
	require.ErrorIs(t, err, agent.CodeInvalidInput)

	c := sample("new")
	chunks := chain(t, "one")
	forged := []store.Packed{{Digest: chunks[0].Digest, Data: []byte("not that")}}
	f, err := Read(bytes.NewReader(file(t, c, forged)), keys)
	require.NoError(t, err, "whoever has the key can sign anything")
	for _, err := range f.Chunks() {
		require.ErrorIs(t, err, agent.CodeBadSignature)
	}
}
