package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
)

func keys(t *testing.T) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	return public, private
}

// record is a record of some entries, of a process that has ended.
func record(t *testing.T, private ed25519.PrivateKey) (path string, lines []string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.jsonl")
	w, err := audit.Open(path, private, "worker")
	require.NoError(t, err)
	for i := range 4 {
		require.NoError(t, w.Append(audit.Entry{Kind: audit.KindVerb, What: "pause", Session: fmt.Sprint("s-", i), By: `ana "the boss"`}))
	}
	require.NoError(t, w.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return path, slices.Collect(strings.Lines(string(text)))
}

func verify(key ed25519.PublicKey, lines []string, heads ...audit.Head) (audit.Report, error) {
	return audit.Verify(strings.NewReader(strings.Join(lines, "")), key, heads...)
}

// A record that lacks a line, or has one changed, moved, doubled, or of another key, is not whole.
func TestVerify(t *testing.T) {
	public, private := keys(t)
	_, lines := record(t, private)
	r, err := verify(public, lines)
	require.NoError(t, err)
	require.Equal(t, []int64{6, 6, 0}, []int64{r.Entries, r.Head.N, int64(r.Open)})
	head, err := audit.ParseHead(r.Head.String())
	require.NoError(t, err)
	_, err = verify(public, lines, head)
	require.NoError(t, err)

	_, theirs := keys(t)
	_, others := record(t, theirs)
	_, again := record(t, private)
	for name, tt := range map[string]struct {
		lines []string
		says  string
	}{
		"missing":       {slices.Delete(slices.Clone(lines), 2, 3), "line 3 of the audit: it is entry 4: entries are missing"},
		"first missing": {lines[1:], "line 1 of the audit: it is entry 2"},
		"doubled":       {slices.Insert(slices.Clone(lines), 2, lines[2]), "line 4 of the audit: it is entry 3"},
		"moved":         {[]string{lines[0], lines[2], lines[1]}, "line 2 of the audit: it is entry 3"},
		"changed":       {[]string{lines[0], strings.Replace(lines[1], "ana", "bob", 1)}, "line 2 of the audit: its signature"},
		"added to":      {[]string{lines[0], strings.Replace(lines[1], `,"sig"`, `,"by":"bob","sig"`, 1)}, "line 2 of the audit: its signature"},
		"behind sig":    {[]string{lines[0], strings.Replace(lines[1], "\"}\n", "\",\"by\":\"bob\"}\n", 1)}, "line 2 of the audit: its signature"},
		"unsigned":      {[]string{`{"v":1,"n":1}` + "\n"}, "line 1 of the audit: it is not signed"},
		"no JSON":       {[]string{"x\n"}, "line 1 of the audit: it is not JSON"},
		"another key":   {[]string{lines[0], others[1]}, "line 2 of the audit: its signature"},
		"another chain": {[]string{lines[0], again[1]}, "line 2 of the audit: it names another line"},
		"half a line":   {[]string{lines[0], lines[1][:40]}, "line 2 of the audit: it is not complete"},
		"endless line":  {[]string{strings.Repeat("x", 100_000)}, "line 1 of the audit: it is longer"},
	} {
		_, err := verify(public, tt.lines)
		require.ErrorContains(t, err, tt.says, name)
	}
}

// A cut at the end leaves a process open, and lacks a head that was kept.
func TestACutEndShows(t *testing.T) {
	public, private := keys(t)
	_, lines := record(t, private)
	whole, err := verify(public, lines)
	require.NoError(t, err)
	cut, err := verify(public, lines[:3])
	require.NoError(t, err)
	require.Equal(t, 1, cut.Open)
	_, err = verify(public, lines[:3], whole.Head)
	require.ErrorContains(t, err, "its end was cut off")
	_, again := record(t, private)
	_, err = verify(public, again, whole.Head)
	require.ErrorContains(t, err, "was rewritten")
	_, err = audit.ParseHead("7")
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}

// A process that is silent shows, also where another has written since: who cuts an end off
// waits for that. A head that was kept since says that somebody has looked.
func TestASilentProcessShows(t *testing.T) {
	public, private := keys(t)
	path, lines := record(t, private)
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines[:3], "")), 0o600))
	before, err := verify(public, lines[:3])
	require.NoError(t, err)
	w, err := audit.Open(path, private, "worker")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	r, err := audit.Verify(bytes.NewReader(text), public)
	require.NoError(t, err)
	require.Equal(t, 1, r.Open)
	require.Equal(t, before.Last, r.Quiet, "since its last entry, and not the record's")
	r, err = audit.Verify(bytes.NewReader(text), public, r.Head)
	require.NoError(t, err)
	require.Zero(t, r.Quiet)
}

// Whatever somebody else says, an entry stays one that can be read: by verify, and by the
// next process.
func TestNoTextMakesARecordUnreadable(t *testing.T) {
	public, private := keys(t)
	for _, text := range []string{strings.Repeat("d", 2<<20), strings.Repeat("\x01", 2<<20), strings.Repeat("é", 1<<20)} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		w, err := audit.Open(path, private, "worker")
		require.NoError(t, err)
		require.NoError(t, w.Append(audit.Entry{
			Kind: audit.KindVerb, What: text, Event: text, Session: text, Run: text, Agent: text, ID: text, By: text, Principal: text,
			Request: text, Digest: text, Tool: text, Outcome: text, Code: agent.Code(text), Key: text,
		}))
		_, err = audit.Open(path, private, "worker") // the first one was killed
		require.NoError(t, err)
		f, err := os.Open(path)
		require.NoError(t, err)
		r, err := audit.Verify(f, public)
		require.NoError(t, err)
		require.EqualValues(t, 3, r.Entries)
		require.NoError(t, f.Close())
	}
}

// Several processes add to one record, and each finds the end that another has left.
func TestManyWriters(t *testing.T) {
	public, private := keys(t)
	path := filepath.Join(t.TempDir(), "a", "audit.jsonl")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			w, err := audit.Open(path, private, "worker")
			if err != nil {
				t.Error(err)
				return
			}
			for range 10 {
				if err := w.Append(audit.Entry{Kind: audit.KindAlive}); err != nil {
					t.Error(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	r, err := audit.Verify(bytes.NewReader(text), public)
	require.NoError(t, err)
	require.Equal(t, []int64{48, 0}, []int64{r.Entries, int64(r.Open)})
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// What a killed writer left of a line is taken away, which the record tells.
func TestAHalfLineIsMended(t *testing.T) {
	public, private := keys(t)
	for _, left := range []int{0, 1, 3} { // whole lines before the half one
		path, lines := record(t, private)
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines[:left], "")+lines[left][:50]), 0o600))
		w, err := audit.Open(path, private, "worker")
		require.NoError(t, err)
		require.NoError(t, w.Close())
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		r, err := audit.Verify(bytes.NewReader(text), public)
		require.NoError(t, err)
		require.Equal(t, int64(left+3), r.Entries)
		require.Contains(t, string(text), `"kind":"repaired"`)
		require.Contains(t, string(text), `"count":50`)
	}
}

// A record that is cut under a process that goes on is not whole again by what comes after.
func TestACutWhileWritingShows(t *testing.T) {
	public, private := keys(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	w, err := audit.Open(path, private, "worker")
	require.NoError(t, err)
	first, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, w.Append(audit.Entry{Kind: audit.KindVerb, What: "approve"}))
	require.NoError(t, os.Truncate(path, int64(len(first))))
	require.NoError(t, w.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = audit.Verify(bytes.NewReader(text), public)
	require.ErrorContains(t, err, "entries are missing")
}

func TestOpenRefuses(t *testing.T) {
	_, private := keys(t)
	path, _ := record(t, private)
	_, theirs := keys(t)
	_, err := audit.Open(path, theirs, "worker")
	require.ErrorIs(t, err, agent.CodeBadSignature)
	_, err = audit.Open(filepath.Join(path, "below"), private, "worker")
	require.ErrorIs(t, err, agent.CodeNotWritten)
}

// A lock that somebody else keeps holds nothing up forever.
func TestALockThatIsKept(t *testing.T) {
	t.Parallel()
	_, private := keys(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	w, err := audit.Open(path, private, "worker")
	require.NoError(t, err)
	lock := flock.New(audit.LockPath(path))
	require.NoError(t, lock.Lock())
	require.ErrorIs(t, w.Append(audit.Entry{Kind: audit.KindAlive}), agent.CodeNotWritten)
	require.NoError(t, lock.Close())
	require.NoError(t, w.Close())
}

func TestKeysInPEM(t *testing.T) {
	public, private := keys(t)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	read, err := audit.PrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}))
	require.NoError(t, err)
	require.True(t, read.Equal(private))
	text, err = x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	back, err := audit.PublicKey(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: text}))
	require.NoError(t, err)
	require.True(t, back.Equal(public))
	_, err = audit.PrivateKey([]byte("s3cret"))
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.NotContains(t, err.Error(), "s3cret")
	_, err = audit.PublicKey(nil)
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}

// Texts that somebody else chose have a bound.
func TestLongTextsAreCut(t *testing.T) {
	public, private := keys(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	w, err := audit.Open(path, private, "worker")
	require.NoError(t, err)
	require.NoError(t, w.Append(audit.Entry{Kind: audit.KindVerb, What: strings.Repeat("é\x1b", 50_000), By: strings.Repeat("x", 100_000)}))
	require.NoError(t, w.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Less(t, len(text), 10_000)
	_, err = audit.Verify(bytes.NewReader(text), public)
	require.NoError(t, err)
}
