//go:build unix

package mcp_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
	"github.com/stretchr/testify/require"
)

func TestServerThatDiesInACall(t *testing.T) {
	r := setup(t, "usual", mcp.Options{Env: map[string]string{"TOKEN": "s3cret-token"}})
	first := r.pid(t, "pid")
	hung := make(chan error, 1)
	file := filepath.Join(t.TempDir(), "hang")
	go func() {
		_, err := r.call(t.Context(), "hang", file)
		hung <- err
	}()
	require.Eventually(t, func() bool { return exists(file + ".begun") }, soon, 5*time.Millisecond)

	_, err := r.call(t.Context(), "die", "")
	const want = "the MCP server tickets ended during the call (exit status 3); the call may or may not have had its effect; its last lines on stderr: the disk is gone / token [TOKEN]"
	require.EqualError(t, err, want)
	require.ErrorIs(t, err, tool.ErrUnknown)
	require.NotErrorIs(t, err, agent.CodeDenied)
	err = <-hung
	require.EqualError(t, err, want, "every call that was under way fails")
	require.ErrorIs(t, err, tool.ErrUnknown)
	require.NotContains(t, r.log.String(), "s3cret-token")
	gone(t, first)

	// The next call starts it anew.
	require.NotEqual(t, first, r.pid(t, "pid"))
}

// What a server wrote before the call says nothing of why it ended in it.
func TestLastWordsAreOfTheCall(t *testing.T) {
	r := setup(t, "welcoming", mcp.Options{})
	_, err := r.List(t.Context())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "Welcome to 1.0") }, soon, 5*time.Millisecond)
	_, err = r.call(t.Context(), "one", "")
	require.EqualError(t, err, "the MCP server tickets ended during the call (exit status 5); the call may or may not have had its effect; it wrote nothing to stderr meanwhile")
}

// What a server writes beside the protocol is logged up to a bound, and the rest counted.
func TestFloodOfLines(t *testing.T) {
	r := setup(t, "spewing", mcp.Options{})
	require.Equal(t, "done", r.ok(t, "one", ""))
	require.NoError(t, r.Close())
	log := r.log.String()
	for _, line := range []string{"MCP server says", "MCP server wrote a line that is no message"} {
		require.Contains(t, log, line)
		require.LessOrEqual(t, strings.Count(log, line), 1000)
	}
	require.Contains(t, log, "MCP server writes too much, leaving lines out")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestServerThatIsKilledBetweenCalls(t *testing.T) {
	r := setup(t, "usual", mcp.Options{})
	first := r.pid(t, "pid")
	process, err := os.FindProcess(first)
	require.NoError(t, err)
	require.NoError(t, process.Kill())
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "MCP server ended") }, soon, 5*time.Millisecond)
	require.NotEqual(t, first, r.pid(t, "pid"))
}

func TestServersThatDoNotStart(t *testing.T) {
	r := setup(t, "failing", mcp.Options{Env: map[string]string{"TOKEN": "s3cret-token"}})
	_, err := r.List(t.Context())
	require.ErrorContains(t, err, "the MCP server tickets ended while it started (exit status 4) (command ")
	require.ErrorContains(t, err, "; its last lines on stderr: first line / no such ticket file / token [TOKEN]")
	_, err = r.call(t.Context(), "echo", "")
	require.ErrorContains(t, err, "exit status 4")

	missing := mcp.New("tickets", []string{"no-such-program", "--flag"}, nil)
	_, err = missing.List(t.Context())
	require.EqualError(t, err, `the MCP server tickets can't be started (command ["no-such-program" "--flag"]): executable file not found in $PATH`)
	require.NoError(t, missing.Close())
}

func TestServerThatNeverAnswers(t *testing.T) {
	r := setup(t, "mute", mcp.Options{StartTimeout: 300 * time.Millisecond})
	began := time.Now()
	_, err := r.List(t.Context())
	require.ErrorContains(t, err, "the MCP server tickets did not answer within 300ms (command ")
	require.ErrorContains(t, err, "; raise start_timeout if it needs longer; it wrote nothing")
	require.ErrorContains(t, err, "; it wrote nothing to stderr")
	require.Less(t, time.Since(began), soon)

	// Who does not want to wait any more does not have to.
	patient := setup(t, "mute", mcp.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = patient.call(ctx, "echo", "")
	require.ErrorIs(t, err, context.Canceled)
	// And Close does not wait for the start.
	began = time.Now()
	require.NoError(t, patient.Close())
	require.Less(t, time.Since(began), 8*time.Second)
	_, err = patient.List(t.Context())
	require.ErrorIs(t, err, agent.CodeDenied)
}

func TestCancellationReachesTheServer(t *testing.T) {
	r := setup(t, "usual", mcp.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	file := filepath.Join(t.TempDir(), "hang")
	done := make(chan error, 1)
	go func() {
		_, err := r.call(ctx, "hang", file)
		done <- err
	}()
	require.Eventually(t, func() bool { return exists(file + ".begun") }, soon, 5*time.Millisecond)
	pid := r.pid(t, "pid")
	began := time.Now()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Less(t, time.Since(began), 2*time.Second)
	require.Eventually(t, func() bool { return exists(file + ".cancelled") }, soon, 5*time.Millisecond)
	require.Equal(t, pid, r.pid(t, "pid"), "the server goes on")
}

func TestCallTimeout(t *testing.T) {
	r := setup(t, "usual", mcp.Options{CallTimeout: 2 * time.Second})
	_, err := r.List(t.Context()) // starting takes its own time
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "hang")
	_, err = r.call(t.Context(), "hang", file)
	require.EqualError(t, err, "the MCP server tickets did not answer within 2s; the call was cancelled, and may or may not have had its effect")
	require.Eventually(t, func() bool { return exists(file + ".cancelled") }, soon, 5*time.Millisecond)
}

func TestAbsurdAnswer(t *testing.T) {
	r := setup(t, "flood", mcp.Options{})
	for range 2 {
		_, err := r.call(t.Context(), "one", "")
		require.ErrorContains(t, err, "the MCP server tickets was ended during the call: it sent a message of more than 16777216 bytes")
	}
}

func TestServerThatClosesItsOutput(t *testing.T) {
	r := setup(t, "closing", mcp.Options{})
	_, err := r.List(t.Context())
	require.NoError(t, err)
	_, err = r.call(t.Context(), "one", "")
	require.ErrorContains(t, err, "closed its output during the call and was ended")
}

// A server that reads no more fills its pipe. Calls still end when they are told to.
func TestServerThatReadsNoMore(t *testing.T) {
	r := setup(t, "deaf", mcp.Options{})
	_, err := r.List(t.Context())
	require.NoError(t, err)
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	for range 4 {
		all.Go(func() {
			if _, err := r.call(ctx, "one", strings.Repeat("x", 100_000)); err == nil {
				t.Error("a call that nobody read was answered")
			}
		})
	}
	began := time.Now()
	all.Wait()
	require.Less(t, time.Since(began), 5*time.Second)
	require.NoError(t, r.Close())
}

func TestCloseLeavesNoProcess(t *testing.T) {
	r := setup(t, "usual", mcp.Options{})
	server, child := r.pid(t, "pid"), r.pid(t, "fork")
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	gone(t, server)
	gone(t, child)
	_, err := r.call(t.Context(), "echo", "")
	require.ErrorIs(t, err, agent.CodeDenied)
	require.ErrorContains(t, err, "the MCP server tickets is closed")

	stubborn := setup(t, "stubborn", mcp.Options{})
	server = stubborn.pid(t, "one")
	require.NoError(t, stubborn.Close())
	gone(t, server)

	require.NoError(t, mcp.New("never", []string{"started"}, nil).Close())
}

// What a server has started goes with it, also when it dies by itself.
func TestDeathTakesTheGroup(t *testing.T) {
	r := setup(t, "usual", mcp.Options{})
	child := r.pid(t, "fork")
	_, err := r.call(t.Context(), "die", "")
	require.ErrorContains(t, err, "ended during the call (exit status 3)")
	gone(t, child)
}

func TestCloseDuringACall(t *testing.T) {
	r := setup(t, "usual", mcp.Options{})
	file := filepath.Join(t.TempDir(), "hang")
	done := make(chan error, 1)
	go func() {
		_, err := r.Call(t.Context(), &tool.Call{Tool: "tickets__hang", Arguments: []byte(`{"text":"` + file + `"}`)})
		done <- err
	}()
	require.Eventually(t, func() bool { return exists(file + ".begun") }, soon, 5*time.Millisecond)
	require.NoError(t, r.Close())
	require.EqualError(t, <-done, "the MCP server tickets was closed during the call; the call may or may not have had its effect")
}
