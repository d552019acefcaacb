package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// anywhere runs a command that names no task queue.
func (s *stage) anywhere(in string, args ...string) ran {
	s.t.Helper()
	at := slices.Index(s.flags, "--task-queue")
	args = append(args, slices.Delete(slices.Clone(s.flags), at, at+2)...)
	var out, errs strings.Builder
	code := newCLI(strings.NewReader(in), &out, &errs).execute(s.t.Context(), args)
	return ran{code, out.String(), errs.String()}
}

// queueOf returns the task queue of a session's last run.
func (s *stage) queueOf(session string) string {
	s.t.Helper()
	d, err := s.temporal.DescribeWorkflowExecution(s.t.Context(), session, "")
	require.NoError(s.t, err)
	return d.GetWorkflowExecutionInfo().GetTaskQueue()
}

// A session continues where its last run was, unless the user names another task queue.
func TestASessionStaysAtItsTaskQueue(t *testing.T) {
	s := scripted(t, thrifty()).works(pay())
	id, _ := s.failed("a")
	r := s.anywhere("", "retry", id, "--yes")
	require.Zero(t, r.exit, r.out+r.err)
	require.Contains(t, r.out, "All is paid.")
	r = s.anywhere("", "send", id, "again", "--wait")
	require.Zero(t, r.exit, r.out+r.err)
	require.Contains(t, r.out, "starts with it\n│ As you say.")
	r = s.anywhere("", "fork", id, "--message", "again", "--new", "--as", id+"-b", "--yes")
	require.Zero(t, r.exit, r.out+r.err)
	require.Equal(t, s.name, s.queueOf(id+"-b"))
	r = s.anywhere("again\n", "chat", "--session", id)
	require.Zero(t, r.exit, r.out+r.err)
	require.Equal(t, s.name, s.queueOf(id))

	// The named task queue has no worker, and the new run waits there.
	r = s.anywhere("", "send", id, "again", "--task-queue", s.name+"-b")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, s.name+"-b", s.queueOf(id))
}

// The agents file of this directory need not be that of the session's workers.
func TestASessionOfAnotherFilesTaskQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("s.yaml", "replies: [{text: \"Packed.\", repeat: 9}]\n")
	b.write("fermata.yaml", "agents: {waiter: {model: \"script:s.yaml\"}}\n")
	b.write("orders.yaml", "agents: {packer: {model: \"script:s.yaml\"}}\n")
	dev := b.start("dev")
	dev.until("ready")
	w := b.start("worker", "--agents", "orders.yaml", "--task-queue", "orders")
	w.until("ready")
	r := b.run("run", "packer", "x", "--session", "p-1", "--agents", "orders.yaml", "--task-queue", "orders")
	require.Zero(t, r.exit, r.err)
	for _, args := range [][]string{{"send", "p-1", "again", "--wait"}, {"fork", "p-1", "--message", "again"}} {
		r = b.run(args...)
		require.Zero(t, r.exit, r.out+r.err)
		require.Contains(t, r.out, "Packed.")
	}
	require.Zero(t, w.end(syscall.SIGINT).exit)
	require.Zero(t, dev.end(syscall.SIGINT).exit)
}

// While the workers of a session's task queue are away, no command starts one with this directory's
// file there: it would take everybody's runs.
func TestAForkTakesNoOtherTaskQueue(t *testing.T) {
	s := scripted(t, thrifty()).works(pay())
	id, _ := s.failed("a")
	s.worker.Stop()
	waits := s.begin("waits", "payer", nil) // somebody else's
	dir := t.TempDir()
	file := filepath.Join(dir, "fermata.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "s.yaml"), []byte("replies: [{text: \"Of another file.\", repeat: 9}]\n"), 0o600))
	require.NoError(t, os.WriteFile(file, []byte("agents: {payer: {model: \"script:s.yaml\"}}\n"), 0o600))
	for _, args := range [][]string{{"fork", id, "--message", "again", "--yes"}, {"chat", "--session", id}} {
		r := s.anywhere("again\n", append(args, "--agents", file)...)
		require.NotZero(t, r.exit, r.out)
		require.Contains(t, r.err, string(agent.CodeNoWorker), args)
	}
	d, err := s.temporal.DescribeWorkflowExecution(t.Context(), waits.Session, "")
	require.NoError(t, err)
	require.Nil(t, d.GetWorkflowExecutionInfo().GetCloseTime(), "it waits for its own workers")
}
