package devserver

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// waiter ends with what it is told.
func waiter(ctx workflow.Context) (string, error) {
	var told string
	workflow.GetSignalChannel(ctx, "tell").Receive(ctx, &told)
	return told, nil
}

// What a killed process was told is still there, and goes on.
func TestDataOutlivesAKilledProcess(t *testing.T) {
	dir := t.TempDir()
	first := spawn(t, dir)
	first.ready(t)
	c := dial(t, &Server{addr: first.addr, namespace: "default"})
	register := func(r worker.Registry) {
		registerGreeter(r)
		r.RegisterWorkflow(waiter)
	}
	stop := work(t, c, register)
	require.NoError(t, run(t, c, "ended", greeter, "you").Get(t.Context(), nil))
	run(t, c, "open", waiter)
	stop()
	first.kill()
	require.FileExists(t, filepath.Join(dir, addressName), "nobody was there to remove it")

	s := start(t, &Options{DataDir: dir})
	assert.False(t, s.Shared())
	c = dial(t, s)
	var greeting, told string
	require.NoError(t, c.GetWorkflow(t.Context(), "ended", "").Get(t.Context(), &greeting))
	assert.Equal(t, "hello you", greeting)
	work(t, c, register)
	require.NoError(t, c.SignalWorkflow(t.Context(), "open", "", "tell", "go on"))
	require.NoError(t, c.GetWorkflow(t.Context(), "open", "").Get(t.Context(), &told))
	assert.Equal(t, "go on", told)
}

func TestSecondProcessShares(t *testing.T) {
	dir := t.TempDir()
	first := spawn(t, dir)
	first.ready(t)
	assert.False(t, first.shared)

	second, err := Start(t.Context(), &Options{DataDir: dir, Namespace: "other"})
	require.NoError(t, err)
	assert.True(t, second.Shared())
	assert.Equal(t, first.addr, second.Addr())
	run(t, dial(t, second), "w", "nobody")
	second.Stop()
	second.Stop()

	// The first is as it was, and so is the second's namespace.
	third := start(t, &Options{DataDir: dir, Namespace: "other"})
	assert.True(t, third.Shared())
	_, err = dial(t, third).DescribeWorkflowExecution(t.Context(), "w", "")
	assert.NoError(t, err)

	first.end(t)
	assert.NoFileExists(t, filepath.Join(dir, addressName))
	fourth := start(t, &Options{DataDir: dir})
	assert.False(t, fourth.Shared())
}

func TestManyStartsHaveOneOwner(t *testing.T) {
	dir := t.TempDir()
	children := []*child{spawn(t, dir), spawn(t, dir), spawn(t, dir)}
	owners := 0
	for _, c := range children {
		c.ready(t)
		assert.Equal(t, children[0].addr, c.addr)
		if !c.shared {
			owners++
		}
	}
	assert.Equal(t, 1, owners)
}

func TestManyStartsInOneProcess(t *testing.T) {
	dir := t.TempDir()
	servers := make([]*Server, 3)
	var all sync.WaitGroup
	for i := range servers {
		all.Go(func() {
			var err error
			servers[i], err = Start(t.Context(), &Options{DataDir: dir})
			assert.NoError(t, err)
		})
	}
	all.Wait()
	owners := 0
	for _, s := range servers {
		require.NotNil(t, s)
		defer s.Stop()
		assert.Equal(t, servers[0].Addr(), s.Addr())
		if !s.Shared() {
			owners++
		}
	}
	assert.Equal(t, 1, owners)
}

// A start waits for the owner that is about to go, and then has the data.
func TestStartWaitsForAnOwnerThatStops(t *testing.T) {
	dir := t.TempDir()
	lock := flock.New(filepath.Join(dir, lockName))
	require.NoError(t, lock.Lock())
	started := make(chan *Server)
	go func() {
		s, err := Start(t.Context(), &Options{DataDir: dir})
		assert.NoError(t, err)
		started <- s
	}()
	select {
	case <-started:
		t.Error("started without the lock")
	case <-time.After(5 * peerInterval):
	}
	require.NoError(t, lock.Unlock())
	s := <-started
	require.NotNil(t, s)
	defer s.Stop()
	assert.False(t, s.Shared())
}

// A start that has found a server which then stops has its place.
func TestStartAfterAServerThatIsGone(t *testing.T) {
	dir := t.TempDir()
	first := start(t, &Options{DataDir: dir})
	found := &Server{addr: first.Addr(), namespace: "default", shared: true}
	require.NoError(t, prepare(t.Context(), found, nil))
	first.Stop()
	assert.ErrorIs(t, prepare(t.Context(), found, nil), errGone)
}

// An address that was left behind may by now be that of a server with other data.
func TestAddressOfOtherDataIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	lock := flock.New(filepath.Join(dir, lockName))
	require.NoError(t, lock.Lock())
	defer lock.Unlock()
	stale := ForTest(t).Addr() + "\n00000000-0000-0000-0000-000000000000\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, addressName), []byte(stale), 0o600))

	_, err := findPeer(t.Context(), dir)
	require.ErrorContains(t, err, "has other data")

	ctx, cancel := context.WithTimeout(t.Context(), 5*peerInterval)
	defer cancel()
	_, err = Start(ctx, &Options{DataDir: dir})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "belongs to another process")
}
