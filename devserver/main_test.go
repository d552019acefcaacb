package devserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// childDir names, in the environment, the data directory for which the test binary
// is to be a program that runs a server, and no test.
const childDir = "DEVSERVER_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(runChild(dir))
	}
	Main(m)
}

// runChild starts a server, says where it is, and stops it when its input ends.
func runChild(dir string) int {
	worker.SetBinaryChecksum("test")
	s, err := Start(context.Background(), &Options{DataDir: dir})
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	fmt.Println("ready", s.Addr(), s.Shared())
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Stop()
	return 0
}

// A child is a process with a server of its own, or one that it shares.
type child struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stdout *bufio.Reader

	addr   string
	shared bool
}

// spawn begins a child, which has a server after ready.
func spawn(t *testing.T, dir string) *child {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := &child{cmd: exec.Command(self)}
	c.cmd.Env = append(os.Environ(), childDir+"="+dir)
	c.cmd.Stderr = os.Stderr
	c.stdin, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.stdout = bufio.NewReader(stdout)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(c.kill)
	return c
}

// ready waits until the child has a server.
func (c *child) ready(t *testing.T) {
	t.Helper()
	line, err := c.stdout.ReadString('\n')
	require.NoError(t, err)
	_, err = fmt.Sscanf(line, "ready %s %t", &c.addr, &c.shared)
	require.NoError(t, err, strings.TrimSpace(line))
}

// kill ends the child without giving it a chance to do anything.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// end lets the child stop its server.
func (c *child) end(t *testing.T) {
	t.Helper()
	require.NoError(t, c.stdin.Close())
	require.NoError(t, c.cmd.Wait())
}

// start starts a server that stops with the test.
func start(t *testing.T, o *Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

// dial returns a client that closes with the test.
func dial(t *testing.T, s *Server) client.Client {
	t.Helper()
	c, err := s.Dial(t.Context(), client.Options{Logger: silence})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// work starts a worker on a task queue named like the test. The returned function
// stops it, which the end of the test does too.
func work(t *testing.T, c client.Client, register func(worker.Registry)) (stop func()) {
	t.Helper()
	w := worker.New(c, t.Name(), worker.Options{})
	register(w)
	require.NoError(t, w.Start())
	done := false
	stop = func() {
		if !done {
			done = true
			w.Stop()
		}
	}
	t.Cleanup(stop)
	return stop
}

// run starts a workflow on the test's task queue.
func run(t *testing.T, c client.Client, id string, w any, args ...any) client.WorkflowRun {
	t.Helper()
	r, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: t.Name()}, w, args...)
	require.NoError(t, err)
	return r
}

// long is a bound on things that take milliseconds, on a machine that is busy and
// with the race detector.
const long = 30 * time.Second
