package audit_test

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
)

// long is more than anybody waits for an entry: less than a workflow's task may take.
const long = 8 * time.Second

// addsAtOnce expects many entries not to be written, within the time of one.
func addsAtOnce(t *testing.T, w *audit.Writer) {
	t.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := w.Append(audit.Entry{Kind: audit.KindVerb}); agent.CodeOf(err) != agent.CodeNotWritten {
				t.Errorf("got %v", err)
			}
		})
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(long):
		t.Fatalf("some wait for more than %s", time.Since(began))
	}
}

// Another process that hangs with the lock keeps nobody waiting for longer than one turn.
func TestManyWaitForALockTogether(t *testing.T) {
	t.Parallel()
	_, private := keys(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	w, err := audit.Open(path, private, "worker")
	require.NoError(t, err)
	other := flock.New(audit.LockPath(path))
	require.NoError(t, other.Lock())
	addsAtOnce(t, w)
	require.NoError(t, other.Close())
	require.NoError(t, w.Append(audit.Entry{Kind: audit.KindVerb}))
	require.NoError(t, w.Close())
}

// A file system that hangs keeps nobody waiting either; when it answers again, the record
// goes on.
func TestAFileSystemThatHangs(t *testing.T) {
	t.Parallel()
	public, private := keys(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	w, err := audit.Open(path, private, "worker")
	require.NoError(t, err)
	require.NoError(t, os.Remove(audit.LockPath(path)))
	require.NoError(t, syscall.Mkfifo(audit.LockPath(path), 0o600)) // opening it waits for a writer
	addsAtOnce(t, w)
	back, err := os.OpenFile(audit.LockPath(path), os.O_RDWR, 0)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return w.Append(audit.Entry{Kind: audit.KindVerb}) == nil }, long, time.Millisecond)
	require.NoError(t, w.Close())
	require.NoError(t, back.Close())
	text, err := os.Open(path)
	require.NoError(t, err)
	defer text.Close()
	_, err = audit.Verify(text, public)
	require.NoError(t, err)
}
