//go:build unix

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const soon = 20 * time.Second

// rig is a server of the test binary and what it logs.
type rig struct {
	*mcp.Server
	log *logs
}

type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func setup(t *testing.T, kind string, o mcp.Options) rig {
	t.Helper()
	if o.Env == nil {
		o.Env = map[string]string{}
	}
	o.Env[serve] = kind
	o.AsRoot = true                         // CI is root
	o.Write = append(o.Write, os.TempDir()) // where tests meet it
	o.Env["GORACE"] = "atexit_sleep_ms=0"   // or a server that was built with -race ends a second late
	log := &logs{}
	o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := mcp.New("tickets", []string{os.Args[0]}, &o)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return rig{s, log}
}

func (r rig) call(ctx context.Context, name, text string) (string, error) {
	arguments, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return "", err
	}
	return r.Call(ctx, &tool.Call{Tool: "tickets__" + name, Arguments: arguments, Key: "r/t1.1"})
}

func (r rig) ok(t testing.TB, name, text string) string {
	t.Helper()
	answer, err := r.call(t.Context(), name, text)
	require.NoError(t, err)
	return answer
}

func (r rig) pid(t testing.TB, name string) int {
	t.Helper()
	pid, err := strconv.Atoi(r.ok(t, name, ""))
	require.NoError(t, err)
	return pid
}

func fullNames(specs []agent.ToolSpec) (names []string) {
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return names
}

// gone waits until a process has ended.
func gone(t testing.TB, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
			_, state, _ := strings.Cut(string(stat), ") ")
			return strings.HasPrefix(state, "Z") // ended, and nobody has asked yet
		}
		return syscall.Kill(pid, 0) != nil
	}, soon, 5*time.Millisecond, "process %d lives on", pid)
}

// A server whose hints are trusted says which of its tools only read.
func TestTrustHints(t *testing.T) {
	specs, err := setup(t, "usual", mcp.Options{TrustHints: true}).List(t.Context())
	require.NoError(t, err)
	for _, s := range specs {
		require.Equal(t, s.Name == "tickets__look", s.ReadOnly, s.Name)
	}
}

func TestList(t *testing.T) {
	r := setup(t, "usual", mcp.Options{CallTimeout: time.Minute})
	require.Equal(t, "tickets", r.Name())
	specs, err := r.List(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"tickets__look", "tickets__echo", "tickets__pid", "tickets__environment", "tickets__fail", "tickets__fail_silently", "tickets__nothing",
		"tickets__media", "tickets__structured", "tickets__large", "tickets__die", "tickets__noise", "tickets__hang", "tickets__progress", "tickets__fork",
	}, fullNames(specs))
	for _, s := range specs {
		require.NoError(t, agent.CheckTool(s.Name))
		require.Contains(t, string(s.Input), `"type":"object"`)
		require.Zero(t, s.Attempts, "an annotation of a server makes no call be made again")
		require.False(t, s.Local)
		require.False(t, s.ReadOnly, "%s: what a server says of its tools counts for nothing", s.Name)
		require.Equal(t, agent.Duration(time.Minute), s.Timeout)
		if s.Name == "tickets__look" {
			require.Equal(t, strings.Repeat("é", 2048)+"…", s.Description)
		}
	}
	again, err := r.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, specs, again)
}

func TestResults(t *testing.T) {
	r := setup(t, "usual", mcp.Options{Env: map[string]string{"TOKEN": "s3cret-token"}})
	require.Equal(t, "hello\nr/t1.1", r.ok(t, "echo", "hello"))
	require.Equal(t, "(no output)", r.ok(t, "nothing", ""))
	require.Equal(t, strings.Join([]string{
		"[image, image/png, 5 bytes, not shown]", "a\uFFFDb", "[audio, audio/wav, 3 bytes, not shown]", "[link to log, file:///log, text/plain, 7 bytes]",
		"[resource, file:///t]", "embedded", "[resource, file:///b, x/y, 2 bytes, not shown]",
	}, "\n"), r.ok(t, "media", ""))
	require.Equal(t, "[image, image/png, 1 bytes, not shown]\n{\"id\":7}", r.ok(t, "structured", ""))
	require.Len(t, r.ok(t, "large", ""), 1<<20)
	require.Equal(t, "still here", r.ok(t, "noise", ""))
	require.Equal(t, "still here", r.ok(t, "noise", ""), "garbage on its outputs does no harm")
	require.Contains(t, r.log.String(), "a library says hello on stdout [TOKEN]")

	for name, words := range map[string]string{"fail": "no such ticket", "fail_silently": "the tool failed and did not say why"} {
		_, err := r.call(t.Context(), name, "")
		require.EqualError(t, err, words)
		require.NotErrorIs(t, err, agent.CodeDenied, "a failure is no refusal")
	}
}

func TestRefusals(t *testing.T) {
	r := setup(t, "usual", mcp.Options{})
	_, err := r.call(t.Context(), "no_such_tool", "")
	require.ErrorIs(t, err, agent.CodeDenied)
	require.EqualError(t, err, "the MCP server tickets does not have the tool tickets__no_such_tool any more; nothing was done")
	_, err = r.Call(t.Context(), &tool.Call{Tool: "other__echo"})
	require.ErrorIs(t, err, agent.CodeUnknownTool)
	for _, arguments := range []string{`[]`, `"x"`, `{`, `null`, `{} {}`} {
		_, err = r.Call(t.Context(), &tool.Call{Tool: "tickets__echo", Arguments: []byte(arguments)})
		require.ErrorIs(t, err, agent.CodeDenied, arguments)
	}
	_, err = r.Call(t.Context(), &tool.Call{Tool: "tickets__nothing"})
	require.NoError(t, err, "no arguments are an empty object")
}

func TestEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "s3cret-key")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	r := setup(t, "usual", mcp.Options{Env: map[string]string{"TOKEN": "given-token"}, Dir: dir})
	env := r.ok(t, "environment", "")
	require.NotContains(t, env, "s3cret-key")
	require.Contains(t, env, "TOKEN=given-token")
	require.Contains(t, env, "PATH="+os.Getenv("PATH"))
	require.Contains(t, env, "in "+dir)
}

// A server's tools are named after it, whatever they are called there (HA-62).
func TestNames(t *testing.T) {
	r := setup(t, "nameless", mcp.Options{})
	// Before anything was listed, as on a worker that takes over a run.
	require.Equal(t, "I am plain", r.ok(t, "plain", ""))
	specs, err := r.List(t.Context())
	require.NoError(t, err)
	long, longer := "", ""
	for _, s := range specs {
		require.NoError(t, agent.CheckTool(s.Name))
		switch r.ok(t, strings.TrimPrefix(s.Name, "tickets__"), "") {
		case "I am " + strings.Repeat("long", 30):
			long = s.Name
		case "I am " + strings.Repeat("long", 31):
			longer = s.Name
		}
	}
	require.ElementsMatch(t, []string{"tickets__a_b", "tickets__plain", "tickets__sub__lig", "tickets___x", long, longer}, fullNames(specs))
	require.Equal(t, "I am a_b", r.ok(t, "a_b", ""))
	require.Equal(t, "I am sub/ölig", r.ok(t, "sub__lig", ""))
	require.Contains(t, r.log.String(), `msg="MCP tool left out: another one has its name" mcp=tickets tool=a.b`)
	require.Contains(t, r.log.String(), `msg="MCP tool renamed" mcp=tickets tool=sub/ölig name=tickets__sub__lig`)

	// A process that has not listed yet knows the changed names, too.
	fresh := setup(t, "nameless", mcp.Options{})
	require.Equal(t, "I am "+strings.Repeat("long", 31), fresh.ok(t, strings.TrimPrefix(longer, "tickets__"), ""))
}

func TestListIsBounded(t *testing.T) {
	_, err := setup(t, "many", mcp.Options{}).List(t.Context())
	require.ErrorContains(t, err, "more than 1000 tools")
	_, err = setup(t, "endless", mcp.Options{}).List(t.Context())
	require.ErrorContains(t, err, "more than 200 pages")
	r := setup(t, "odd", mcp.Options{})
	specs, err := r.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"tickets__good"}, fullNames(specs))
	for _, words := range []string{"its schema is not that of an object", "its schema has more than", "another one has its name", "no model may call it"} {
		require.Contains(t, r.log.String(), words)
	}
	_, err = r.call(t.Context(), "good", "")
	require.ErrorContains(t, err, "the MCP server tickets does not answer as it should")
}

func TestProtocols(t *testing.T) {
	for _, kind := range []string{"strict", "modern", "chatty"} {
		r := setup(t, kind, mcp.Options{})
		specs, err := r.List(t.Context())
		require.NoError(t, err, kind)
		require.Equal(t, []string{"tickets__one"}, fullNames(specs), kind)
		require.Equal(t, "done", r.ok(t, "one", ""), kind)
	}
}

func TestProgress(t *testing.T) {
	r := setup(t, "usual", mcp.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := make(chan string, 10)
	call := tool.Call{Tool: "tickets__progress"}.With(&toolcall.Hooks{Progress: func(note string) { said <- note }})
	done := make(chan error, 1)
	go func() {
		_, err := r.Call(ctx, call)
		close(said)
		done <- err
	}()
	require.Equal(t, "1 of 2: halfway", <-said)
	require.Equal(t, "2", <-said)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

func TestManyAtOnce(t *testing.T) {
	r := setup(t, "usual", mcp.Options{})
	var all sync.WaitGroup
	pids := make(chan string, 20)
	for i := range 20 {
		all.Go(func() {
			text := fmt.Sprint("n", i)
			if answer, err := r.call(t.Context(), "echo", text); err != nil || answer != text+"\nr/t1.1" {
				t.Errorf("%q %v", answer, err)
			}
			pid, err := r.call(t.Context(), "pid", "")
			if err != nil {
				t.Error(err)
			}
			pids <- pid
			if _, err := r.List(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(pids)
	first := <-pids
	for pid := range pids {
		require.Equal(t, first, pid)
	}
	require.Equal(t, 1, strings.Count(r.log.String(), "MCP server started"))
}

func TestFaultyDescriptions(t *testing.T) {
	for _, s := range []*mcp.Server{
		mcp.New("", []string{"true"}, nil), mcp.New("a b", []string{"true"}, nil), mcp.New("a__b", []string{"true"}, nil),
		mcp.New("a_", []string{"true"}, nil), mcp.New(strings.Repeat("a", 33), []string{"true"}, nil), mcp.New("a", nil, nil), mcp.New("a", []string{""}, nil),
	} {
		_, err := s.List(t.Context())
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		require.NoError(t, s.Close())
	}
}

func TestNoGoroutineIsLeft(t *testing.T) {
	r := setup(t, "usual", mcp.Options{})
	r.ok(t, "echo", "x")
	_, err := r.call(t.Context(), "die", "")
	require.Error(t, err)
	r.ok(t, "echo", "x")
	require.NoError(t, r.Close())
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		all := stacks()
		for _, ours := range []string{"modelcontextprotocol/go-sdk", "tool/mcp.(*process)", "tool/mcp.(*Server)"} {
			assert.NotContains(c, all, ours)
		}
	}, soon, 5*time.Millisecond)
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
