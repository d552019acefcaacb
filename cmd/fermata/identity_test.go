package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// Two workers of a task queue with different stores would leave each other's sessions
// without what was said in them: the second one is refused, with both places.
func TestASecondStoreIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	other := filepath.Join(b.tmp, "other")
	folder, err := store.OpenDir(other, nil)
	require.NoError(t, err)
	_, err = store.ID(t.Context(), folder)
	require.NoError(t, err)
	d := b.start("dev", "--addr", b.addr)
	d.until("ready")
	mine := filepath.Join(b.data, "fermata", "store")

	r := b.run("worker", "--agents", "fermata.yaml", "--address", b.addr, "--store", other)
	require.NotZero(t, r.exit, r.out)
	require.Contains(t, r.err, "[not_set_up]")
	require.Contains(t, r.err, "the store in "+other+" is not the one of the task queue fermata, which is in "+mine)
	r = b.run("run", "reader", "What do the notes say?", "--session", "s-1")
	require.Zero(t, r.exit, r.err)

	// Reading with another store is said, and nothing is refused that needs none.
	r = b.run("ls", "--address", b.addr, "--store", other)
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, "the store in "+other+" is not the one of the task queue fermata, which is in "+mine)
	missing := filepath.Join(b.tmp, "missing")
	r = b.run("runs", "s-1", "--address", b.addr, "--store", missing)
	require.NotZero(t, r.exit, r.out)
	require.Contains(t, r.err, "there is no store in "+missing+", and none was created: the task queue fermata has its store in "+mine)
	require.NoDirExists(t, missing)
	// What destroys is refused: Temporal would forget a session whose log is elsewhere.
	r = b.run("delete", "s-1", "--yes", "--address", b.addr, "--store", other)
	require.NotZero(t, r.exit, r.out)
	require.Contains(t, r.err, "[not_set_up] deleting session s-1: the store in "+other+" is not the one of the task queue fermata, which is in "+mine)
	require.Zero(t, b.run("show", "s-1", "--address", b.addr).exit)
	require.Contains(t, b.run("doctor", "--address", b.addr, "--store", other).out, "FAIL store")

	r = b.run("doctor", "--namespace", "nope")
	require.Contains(t, r.out, "-> temporal operator namespace create -n nope --address "+b.addr)
	require.Regexp(t, `(?m)^FAIL store .* is that of the namespace "default"`, r.out)

	// A task queue of its own may have a store of its own.
	d.end(syscall.SIGTERM)
	r = b.run("run", "reader", "x", "--task-queue", "two", "--store", other)
	require.Zero(t, r.exit, r.err)
	r = b.run("run", "reader", "x", "--store", other)
	require.NotZero(t, r.exit, "the record outlives the worker")
	require.Contains(t, r.err, "which is in "+mine)
}

// Two namespaces on one store would go on in each other's sessions: the store is that of the
// one whose worker came first.
func TestAStoreIsOfOneNamespace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	d := b.start("dev", "--addr", b.addr)
	d.until("ready")
	kept := filepath.Join(b.data, "fermata", "store")
	require.Zero(t, b.run("run", "reader", "What do the notes say?", "--session", "s-1").exit)
	c, err := client.Dial(client.Options{HostPort: b.addr, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: "other", WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	place := kept
	at := func(args ...string) ran {
		return b.run(append(args, "--address", b.addr, "--namespace", "other", "--store", place)...)
	}
	require.Eventually(t, func() bool { return at("setup").exit == 0 }, patience, 50*time.Millisecond)

	refused := "the store in " + kept + ` is that of the namespace "default", and this is "other"`
	for _, args := range [][]string{{"worker", "--agents", "fermata.yaml"}, {"run", "reader", "x", "--session", "s-1"}, {"delete", "s-1", "--yes"}} {
		r := at(args...)
		require.Equal(t, agent.CodeNotSetUp.ExitStatus(), r.exit, "%s: %s", args, r.err)
		require.Contains(t, r.err, refused, args)
	}
	require.Contains(t, at("doctor").out, "FAIL store       "+refused)
	require.Contains(t, at("ls").err, refused)
	r := b.run("transcript", "s-1", "--address", b.addr)
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "What do the notes say?", "what was said in it is still there")

	// Its own store is no other's.
	place = filepath.Join(b.tmp, "own")
	r = at("run", "reader", "x", "--session", "s-3")
	require.Zero(t, r.exit, r.err)

	// Who takes the mark away gives the store to another namespace.
	d.end(syscall.SIGTERM)
	require.NoError(t, os.Remove(filepath.Join(kept, "namespace")))
	r = b.run("run", "reader", "x", "--session", "s-4", "--task-queue", "new", "--namespace", "other", "--store", kept)
	require.Zero(t, r.exit, r.err)
}

// Who reads a session of another task queue, with the store of this one, is told so.
func TestASessionOfAnotherQueueIsToldSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	dev := b.elsewhere().start("dev")
	dev.until("ready")
	other := filepath.Join(b.tmp, "other")
	r := b.run("run", "reader", "What do the notes say?", "--session", "s-1", "--task-queue", "two", "--store", other)
	require.Zero(t, r.exit, r.err)
	for _, args := range [][]string{{"transcript", "s-1"}, {"events", "s-1"}, {"runs", "s-1"}, {"fork", "s-1", "--plan"}, {"fork", "s-1", "--message", "x", "--detach"}} {
		r = b.run(args...)
		require.NotZero(t, r.exit, args)
		require.Contains(t, r.err, "session s-1 belongs to the task queue two, whose store is in "+other+": name them with --task-queue and --store", args)
		r = b.run("transcript", "s-1", "--task-queue", "two", "--store", other)
		require.Zero(t, r.exit, r.err)
	}
	dev.end(syscall.SIGTERM)
}

// A session that has run and of which the store has nothing does not begin anew as if
// nothing had been said.
func TestASessionIsNeverSilentlyEmpty(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	require.Zero(t, b.run("run", "reader", "What do the notes say?", "--session", "s-1").exit)
	root := filepath.Join(b.data, "fermata", "store")
	heads, err := filepath.Glob(filepath.Join(root, "heads", "*.json"))
	require.NoError(t, err)
	require.Len(t, heads, 1)
	require.NoError(t, os.Remove(heads[0]))

	r := b.run("run", "reader", "And now?", "--session", "s-1")
	require.Equal(t, 1, r.exit, r.out)
	require.Contains(t, r.err, "[chunk_missing]")
	require.Contains(t, r.err, root)
	r = b.run("run", "reader", "And now?", "--session", "s-1")
	require.Contains(t, r.err, "[chunk_missing]", "the run that failed so is none that the session goes on from")

	// A run that stored nothing is none to miss.
	require.NotZero(t, b.run("run", "nobody", "x", "--session", "s-2", "--agents", "fermata.yaml").exit)
	require.Zero(t, b.run("run", "reader", "What do the notes say?", "--session", "s-2").exit)

	r = b.run("delete", "s-1", "--yes")
	require.Zero(t, r.exit, r.err)
	r = b.run("run", "reader", "What do the notes say?", "--session", "s-1")
	require.Zero(t, r.exit, r.err)
}

// Nor does one that a schedule begins.
func TestAScheduledSessionIsNeverSilentlyEmpty(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	require.Zero(t, b.run("run", "reader", "What do the notes say?", "--session", "s-1").exit)
	heads, err := filepath.Glob(filepath.Join(b.data, "fermata", "store", "heads", "*.json"))
	require.NoError(t, err)
	require.Len(t, heads, 1)
	require.NoError(t, os.Remove(heads[0]))
	dev := b.start("dev")
	dev.until("ready")
	r := b.run("schedule", "create", "often", "--every", "1s", "--session", "s-1", "--agent", "reader", "And now?")
	require.Zero(t, r.exit, r.err)
	require.Eventually(t, func() bool {
		r = b.run("show", "s-1", "--json")
		return lastLine[shown](t, r.out).Task == "And now?" && lastLine[shown](t, r.out).Status.Ended()
	}, patience, 50*time.Millisecond)
	require.Equal(t, string(agent.CodeChunkMissing), lastLine[shown](t, r.out).Reason)
	require.Zero(t, b.run("schedule", "delete", "often").exit)
	require.Zero(t, dev.end(syscall.SIGTERM).exit)
}

// Two copies of a store have one identity. A session that went on in one of them does not go
// on in the other as if the rest had not been said, whichever of them is longer.
func TestACopyThatLacksTheEndIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	require.Zero(t, b.run("run", "reader", "What do the notes say?", "--session", "s-1").exit)
	mine, other := filepath.Join(b.data, "fermata", "store"), filepath.Join(b.tmp, "copy")
	require.NoError(t, os.CopyFS(other, os.DirFS(mine)))
	r := b.run("run", "reader", "And now?", "--session", "s-1")
	require.Contains(t, r.err, "[provider_error]", "the script has no more, which is stored as well")

	r = b.run("run", "reader", "And then?", "--session", "s-1", "--store", other)
	require.Equal(t, 1, r.exit, r.out)
	require.Contains(t, r.err, "[chunk_missing]")
	require.Contains(t, r.err, "the store "+other+" has not its end")
	require.Zero(t, b.run("run", "reader", "What do the notes say?", "--session", "s-2", "--store", other).exit)
	r = b.run("run", "reader", "And then?", "--session", "s-1")
	require.Contains(t, r.err, "[provider_error]", "the whole one goes on")
}

// A run beside a dev that is just starting does not become the first worker: it finds
// dev's. Here dev's server answers long before dev has its worker.
func TestRunWaitsForTheWorkerOfDev(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	mark := filepath.Join(b.tmp, "go-on")
	held := *b
	held.env = append(slices.Clip(b.env), holdsUp+"="+mark)
	d := held.start("dev", "--addr", b.addr)
	require.Eventually(t, func() bool { _, err := os.Stat(mark + ".up"); return err == nil }, patience, time.Millisecond)
	run := b.start("run", "reader", "What do the notes say?")
	c, err := client.Dial(client.Options{HostPort: b.addr, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	require.NoError(t, err, "that there is a server can be seen")
	defer c.Close()
	soon, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = c.DescribeTaskQueue(soon, signals.TaskQueue, enums.TASK_QUEUE_TYPE_WORKFLOW)
	require.Error(t, err, "nobody else is let in before dev's worker polls")
	writeFile(t, mark, "")
	r := run.wait()
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, fmt.Sprintf("worker %d@", d.cmd.Process.Pid))
	d.end(syscall.SIGTERM)
}

// Dev opens its server when the server knows of its worker.
func TestAWorkerPollsOrIsMissed(t *testing.T) {
	s := scripted(t, sleeper())
	c := &connect.Connector{Flags: connect.Flags{TaskQueue: s.name}}
	at := &connect.Server{Client: s.temporal, Namespace: connect.DefaultNamespace}
	soon, cancel := context.WithTimeout(t.Context(), 10*connect.ProbeInterval)
	defer cancel()
	require.ErrorIs(t, c.AwaitPolling(soon, at), agent.CodeNoWorker)
	polls := make(chan error, 1)
	go func() { polls <- c.AwaitPolling(t.Context(), at) }()
	s.works()
	require.NoError(t, <-polls)
}

// With --data the server of that directory is meant. One that happens to listen where
// Temporal usually does belongs to other data.
func TestDataNamesTheServer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	d := b.start("dev", "--addr", b.addr)
	d.until("ready")
	data := filepath.Join(b.tmp, "own")
	r := b.run("run", "reader", "What do the notes say?", "--session", "s-1", "--data", data)
	require.Zero(t, r.exit, r.err)
	first, _, _ := strings.Cut(r.err, "\n")
	require.Regexp(t, `^temporal 127\.0\.0\.1:\d+, namespace default \(embedded in this process, data in `+data+`\)$`, first)
	require.NotContains(t, r.err, b.addr)
	r = b.run("ls", "--data", filepath.Join(b.tmp, "none"))
	require.Equal(t, 5, r.exit, r.out)
	require.Contains(t, r.err, "none runs in the data directory "+filepath.Join(b.tmp, "none"))
	require.NotContains(t, r.err, b.addr)

	// Without it the server that listens is used, and that nobody has named it is said.
	elsewhere := b.elsewhere()
	elsewhere.env = append(elsewhere.env, "XDG_DATA_HOME="+b.tmp)
	r = elsewhere.run("ls")
	require.Contains(t, r.err, "temporal "+b.addr+", namespace default (not named: it listens at Temporal's usual address)")
}
