//go:build unix

package mcp_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
	"github.com/stretchr/testify/require"
)

// swap is a handler that can be replaced, as by a new version of a server.
type swap struct{ current atomic.Value }

func (s *swap) set(h http.HandlerFunc) { s.current.Store(h) }

func (s *swap) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.current.Load().(http.HandlerFunc)(w, req)
}

// knowing notes the session that an answer begins, before the answer is out.
type knowing struct {
	http.ResponseWriter
	sessions *sync.Map
}

func (k *knowing) note() {
	if id := k.Header().Get("Mcp-Session-Id"); id != "" {
		k.sessions.Store(id, true)
	}
}

func (k *knowing) WriteHeader(status int) {
	k.note()
	k.ResponseWriter.WriteHeader(status)
}

func (k *knowing) Write(p []byte) (int, error) {
	k.note()
	return k.ResponseWriter.Write(p)
}

func (k *knowing) Flush() {
	k.note()
	k.ResponseWriter.(http.Flusher).Flush()
}

// A session that the server has forgotten is begun anew, and the call is made once.
func TestForgottenSession(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest} {
		w := newWaiter()
		s := &swap{}
		s.set(httpHandler(w.server(), nil).ServeHTTP)
		r := reach(t, serveHTTP(t, s).URL, mcp.Options{})
		require.Equal(t, "1", r.ok(t, "count", ""))
		next := httpHandler(w.server(), nil)
		var known sync.Map
		s.set(func(w http.ResponseWriter, req *http.Request) {
			if id := req.Header.Get("Mcp-Session-Id"); id != "" {
				if _, ok := known.Load(id); !ok {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session"}}`)
					return
				}
			}
			next.ServeHTTP(&knowing{w, &known}, req)
		})
		require.Equal(t, "2", r.ok(t, "count", ""))
		_, err := r.List(t.Context())
		require.NoError(t, err)
		require.Equal(t, "3", r.ok(t, "count", ""))
		require.Equal(t, 2, strings.Count(r.log.String(), "MCP session began"))

		// One that forgets each at once is given up soon.
		s.set(func(w http.ResponseWriter, req *http.Request) {
			if req.Header.Get("Mcp-Session-Id") != "" && req.Method == http.MethodPost {
				body, _ := io.ReadAll(req.Body)
				if bytes.Contains(body, []byte("tools/")) {
					http.Error(w, "no such session", status)
					return
				}
				req.Body = io.NopCloser(bytes.NewReader(body))
			}
			next.ServeHTTP(w, req)
		})
		_, err = r.call(t.Context(), "count", "")
		require.ErrorIs(t, err, agent.CodeDenied)
		require.ErrorContains(t, err, "no such session")
	}
}

// A session that answers nothing any more is left after one call.
func TestDeadSession(t *testing.T) {
	inner := httpHandler(newWaiter().server(), nil)
	var dead atomic.Value
	dead.Store("")
	r := reach(t, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if id := req.Header.Get("Mcp-Session-Id"); id != "" && id == dead.Load() {
			w.Header().Set("Content-Type", "text/event-stream")
			return
		}
		inner.ServeHTTP(w, req)
		if id := w.Header().Get("Mcp-Session-Id"); id != "" && dead.Load() == "" {
			dead.Store(id)
		}
	})).URL, mcp.Options{})
	_, err := r.call(t.Context(), "count", "")
	require.ErrorContains(t, err, "the MCP server tickets does not answer as it should: ")
	require.Equal(t, "1", r.ok(t, "count", ""))
}

// program is a server that is a process of its own.
type program struct {
	*exec.Cmd
	address string
}

func launch(t *testing.T, address string, env ...string) *program {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serve+"=web", "MCP_TEST_ADDRESS="+address, "GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &program{cmd, ""}
	t.Cleanup(func() { p.kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	p.address = strings.TrimSpace(line)
	return p
}

// kill ends it as kill -9 does.
func (p *program) kill() {
	p.Process.Kill()
	p.Wait()
}

func TestServerThatIsKilledOverHTTP(t *testing.T) {
	first := launch(t, "127.0.0.1:0")
	r := reach(t, "http://"+first.address, mcp.Options{StartTimeout: 2 * time.Second})
	require.Equal(t, first.Process.Pid, r.pid(t, "pid"))

	// Between two calls, and before the first one.
	first.kill()
	for _, r := range []rig{r, reach(t, "http://"+first.address, mcp.Options{StartTimeout: time.Second})} {
		err := refused(func() error { _, err := r.call(t.Context(), "pid", ""); return err })
		require.ErrorContains(t, err, "the MCP server tickets can't be reached (http://"+first.address+"): connect: connection refused; nothing was done")
	}
	second := launch(t, first.address)
	require.Equal(t, second.Process.Pid, r.pid(t, "pid"))

	// During a call.
	file := filepath.Join(t.TempDir(), "hang")
	hung := make(chan error, 1)
	go func() {
		_, err := r.call(t.Context(), "hang", file)
		hung <- err
	}()
	require.Eventually(t, func() bool { return exists(file + ".begun") }, soon, 5*time.Millisecond)
	second.kill()
	err := <-hung
	require.ErrorContains(t, err, "the connection to the MCP server tickets broke during the call: ")
	require.ErrorContains(t, err, "; the call may or may not have had its effect")
	require.ErrorIs(t, err, tool.ErrUnknown)
	require.NotErrorIs(t, err, agent.CodeDenied, "nobody knows that it did nothing")
	third := launch(t, first.address)
	require.Equal(t, third.Process.Pid, r.pid(t, "pid"))
}

// refused does something that a server, which was killed a moment ago, refuses: again if it
// went out over a connection whose end was not heard of yet.
func refused(do func() error) error {
	err := do()
	if err != nil && strings.Contains(err.Error(), " broke ") {
		return do()
	}
	return err
}

// A server that is replaced refuses connections for a while: nothing was done then, and
// a call or a list that meets that is made when the server is there again.
func TestServerThatIsDeployed(t *testing.T) {
	server := launch(t, "127.0.0.1:0")
	r := reach(t, "http://"+server.address, mcp.Options{})
	const waits = "MCP server refuses connections"
	for i, meets := range []func() error{
		func() error { _, err := r.call(t.Context(), "pid", ""); return err },
		func() error { _, err := r.List(t.Context()); return err },
	} {
		require.Equal(t, server.Process.Pid, r.pid(t, "pid"))
		server.kill()
		done := make(chan error, 1)
		go func() { done <- refused(meets) }()
		require.Eventually(t, func() bool { return strings.Count(r.log.String(), waits) == i+1 }, soon, time.Millisecond)
		server = launch(t, server.address)
		require.NoError(t, <-done)
	}
	// And one that is begun while the server is away.
	server.kill()
	fresh := reach(t, "http://"+server.address, mcp.Options{})
	done := make(chan error, 1)
	go func() {
		_, err := fresh.List(t.Context())
		done <- err
	}()
	require.Eventually(t, func() bool { return strings.Contains(fresh.log.String(), waits) }, soon, time.Millisecond)
	launch(t, server.address)
	require.NoError(t, <-done)
}

// Under load, each call has an answer or says that it has none, and all is well
// once the server is there again.
func TestServerThatIsKilledUnderLoad(t *testing.T) {
	server := launch(t, "127.0.0.1:0")
	r := reach(t, "http://"+server.address, mcp.Options{})
	var all sync.WaitGroup
	var answers, failures atomic.Int32
	stop := make(chan struct{})
	for i := range 8 {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				text := fmt.Sprint(i, ".", n)
				switch answer, err := r.call(t.Context(), "echo", text); {
				case err != nil:
					failures.Add(1)
				case answer == text+"\nr/t1.1":
					answers.Add(1)
				default:
					t.Errorf("%q was answered with %q", text, answer)
				}
			}
		})
	}
	for range 3 {
		before := answers.Load()
		require.Eventually(t, func() bool { return answers.Load() > before+50 }, soon, time.Millisecond)
		server.kill()
		failed := failures.Load()
		require.Eventually(t, func() bool { return failures.Load() > failed }, soon, time.Millisecond)
		server = launch(t, server.address)
	}
	close(stop)
	all.Wait()
	require.Equal(t, server.Process.Pid, r.pid(t, "pid"))
	_, err := r.List(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Eventually(t, func() bool { return !clientLeft() }, soon, 5*time.Millisecond, "no goroutine is left")
}

func clientLeft() bool {
	return strings.Contains(stacks(), "tool/mcp.(*web)") || strings.Contains(stacks(), "streamableClientConn")
}

// tampered is a server whose answers to calls of the tool count are others.
func tampered(t *testing.T, w *waiter, answer http.HandlerFunc) rig {
	inner := httpHandler(w.server(), nil)
	return reach(t, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(body))
		if err == nil && bytes.Contains(body, []byte(`"count"`)) {
			answer(w, req)
			return
		}
		inner.ServeHTTP(w, req)
	})).URL, mcp.Options{})
}

// Whatever comes back for one call, the others go on.
func TestAbsurdAnswersOverHTTP(t *testing.T) {
	const doubt = "; the call may or may not have had its effect"
	reply := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, body)
		}
	}
	huge := strings.Repeat("x", 17<<20)
	for name, fault := range map[string]struct {
		answer http.HandlerFunc
		words  string
	}{
		"huge":    {reply("application/json", `{"jsonrpc":"2.0","id":3,"result":{"content":"`+huge+`"}}`), "the MCP server tickets was cut off during the call: it sent a message of more than 16777216 bytes" + doubt},
		"flood":   {reply("text/event-stream", "data: "+huge+"\n\n"), "the MCP server tickets was cut off during the call: it sent a message of more than 16777216 bytes" + doubt},
		"many":    {reply("text/event-stream", strings.Repeat(`data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"`+strings.Repeat("x", 1<<20)+`"}}`+"\n\n", 17)), "the MCP server tickets was cut off during the call: "},
		"values":  {reply("application/json", `{"jsonrpc":"2.0","id":3,"result":{"content":[`+strings.Repeat("{},", 1<<20)+`{}]}}`), "the MCP server tickets was cut off during the call: it sent a message of more than 200000 values" + doubt},
		"crowd":   {reply("text/event-stream", `data: {"jsonrpc":"2.0","id":3,"result":{"content":[`+strings.Repeat("{},", 1<<20)+`{}]}}`+"\n\n"), "the MCP server tickets was cut off during the call: it sent a message of more than 200000 values" + doubt},
		"garbage": {reply("application/json", "garbage"), "the connection to the MCP server tickets broke during the call: "},
		"empty":   {reply("text/event-stream", ""), "the MCP server tickets does not answer as it should: "},
		"gateway": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "try later", http.StatusBadGateway) }, "the MCP server tickets failed during the call: 502 Bad Gateway: try later" + doubt},
		"too much": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "too much", http.StatusRequestEntityTooLarge)
		}, "the MCP server tickets refused: 413 Request Entity Too Large: too much"},
		"page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "<html>"+huge)
		}, "the MCP server tickets refused: 403 Forbidden"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			reply("application/json", "{")(w, nil)
		}, "the connection to the MCP server tickets broke during the call: unexpected EOF" + doubt},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaiter()
			r := tampered(t, w, fault.answer)
			done := make(chan error, 1)
			go func() {
				_, err := r.call(t.Context(), "wait", "")
				done <- err
			}()
			<-w.begun
			_, err := r.call(t.Context(), "count", "")
			require.ErrorContains(t, err, fault.words)
			require.Less(t, len(err.Error()), 1000)
			_, err = r.List(t.Context())
			require.NoError(t, err, "the server is still of use")
			close(w.release)
			require.NoError(t, <-done, "a call that was under way goes on")
		})
	}
}
