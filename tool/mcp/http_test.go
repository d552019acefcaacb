//go:build unix

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/testsuite/conformance"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

const secret = "s3cret-token"

// httpHandler serves a server over HTTP, as the SDK does.
func httpHandler(s *sdk.Server, o *sdk.StreamableHTTPOptions) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, o)
}

// reach is a rig for a server over HTTP.
func reach(t *testing.T, url string, o mcp.Options) rig {
	t.Helper()
	log := &logs{}
	o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := mcp.NewHTTP("tickets", url, &o)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return rig{s, log}
}

func serveHTTP(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// kinds are the ways in which servers answer.
var kinds = map[string]*sdk.StreamableHTTPOptions{
	"streams":   nil,
	"json":      {JSONResponse: true},
	"stateless": {Stateless: true},
	"numbered":  {EventStore: sdk.NewMemoryEventStore(nil)},
}

func TestHTTP(t *testing.T) {
	for kind, o := range kinds {
		t.Run(kind, func(t *testing.T) {
			r := reach(t, serveHTTP(t, httpHandler(usual(), o)).URL, mcp.Options{CallTimeout: time.Minute})
			specs, err := r.List(t.Context())
			require.NoError(t, err)
			require.Len(t, specs, 15)
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					text := fmt.Sprint("n", i)
					if answer, err := r.call(t.Context(), "echo", text); err != nil || answer != text+"\nr/t1.1" {
						t.Errorf("%q %v", answer, err)
					}
				})
			}
			all.Wait()
			require.Equal(t, 1, strings.Count(r.log.String(), "MCP session began"))
			require.Len(t, r.ok(t, "large", ""), 1<<20)
			_, err = r.call(t.Context(), "fail", "")
			require.EqualError(t, err, "no such ticket")
			require.NotErrorIs(t, err, agent.CodeDenied)
			require.NoError(t, r.Close())
			_, err = r.call(t.Context(), "echo", "")
			require.ErrorIs(t, err, agent.CodeDenied)
		})
	}
}

func TestHTTPConformance(t *testing.T) {
	server := serveHTTP(t, guarded(httpHandler(rich(), nil)))
	r := reach(t, server.URL, mcp.Options{
		Resources: true, Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}, Env: map[string]string{"TOKEN": secret},
	})
	secrets := []string{secret}
	conformance.Source(t, r, &conformance.SourceOptions{Tools: map[string]conformance.ToolOptions{
		"tickets__echo":           {Arguments: `{"text":"` + secret + `"}`, Secrets: secrets},
		"tickets__look":           {Secrets: secrets},
		"tickets__list_resources": {Secrets: secrets},
		"tickets__read_resource":  {Arguments: `{"uri":"file:///notes.txt"}`, Secrets: secrets},
		"tickets__get_prompt":     {Arguments: `{"name":"review","arguments":{"ticket":"7"}}`, Secrets: secrets},
	}})
}

func TestHTTPProgressAndCancellation(t *testing.T) {
	r := reach(t, serveHTTP(t, httpHandler(usual(), nil)).URL, mcp.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := make(chan string, 10)
	done := make(chan error, 2)
	go func() {
		_, err := r.Call(ctx, tool.Call{Tool: "tickets__progress"}.With(&toolcall.Hooks{Progress: func(note string) { said <- note }}))
		done <- err
	}()
	require.Equal(t, "1 of 2: halfway", <-said)
	require.Equal(t, "2", <-said)
	file := filepath.Join(t.TempDir(), "hang")
	go func() {
		_, err := r.call(ctx, "hang", file)
		done <- err
	}()
	require.Eventually(t, func() bool { return exists(file + ".begun") }, soon, 5*time.Millisecond)
	began := time.Now()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.ErrorIs(t, <-done, context.Canceled)
	require.Less(t, time.Since(began), 2*time.Second)
	require.Eventually(t, func() bool { return exists(file + ".cancelled") }, soon, 5*time.Millisecond, "the server is told")
	r.ok(t, "echo", "x")
	require.Equal(t, 1, strings.Count(r.log.String(), "MCP session began"), "the session goes on")
}

func TestHTTPTimeLimits(t *testing.T) {
	silent := serveHTTP(t, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		io.Copy(io.Discard, req.Body)
		<-req.Context().Done()
	}))
	r := reach(t, silent.URL, mcp.Options{StartTimeout: 300 * time.Millisecond})
	_, err := r.List(t.Context())
	require.EqualError(t, err, "the MCP server tickets did not answer within 300ms ("+silent.URL+")")

	r = reach(t, serveHTTP(t, httpHandler(usual(), nil)).URL, mcp.Options{CallTimeout: 2 * time.Second})
	_, err = r.List(t.Context())
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "hang")
	_, err = r.call(t.Context(), "hang", file)
	require.EqualError(t, err, "the MCP server tickets did not answer within 2s; the call was cancelled, and may or may not have had its effect")
	require.Eventually(t, func() bool { return exists(file + ".cancelled") }, soon, 5*time.Millisecond)
}

func TestHTTPCloseDuringACall(t *testing.T) {
	w := newWaiter()
	defer close(w.release)
	r := reach(t, serveHTTP(t, httpHandler(w.server(), nil)).URL, mcp.Options{})
	done := make(chan error, 1)
	go func() {
		_, err := r.call(t.Context(), "wait", "")
		done <- err
	}()
	<-w.begun
	require.NoError(t, r.Close())
	require.EqualError(t, <-done, "the MCP server tickets was closed during the call; the call may or may not have had its effect")
	require.Eventually(t, func() bool { return !clientLeft() }, soon, 5*time.Millisecond, "no goroutine is left")
}

// waiter has a tool that waits until it is told to end, whatever becomes of its call.
type waiter struct {
	begun, release chan struct{}
	calls          atomic.Int32
}

func newWaiter() *waiter {
	return &waiter{begun: make(chan struct{}, 100), release: make(chan struct{})}
}

func (w *waiter) server() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "waiter", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "wait"}, func(context.Context, *sdk.CallToolRequest, input) (*sdk.CallToolResult, any, error) {
		w.calls.Add(1)
		w.begun <- struct{}{}
		<-w.release
		return text("waited"), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "count"}, func(context.Context, *sdk.CallToolRequest, input) (*sdk.CallToolResult, any, error) {
		return text(fmt.Sprint(w.calls.Add(1))), nil, nil
	})
	return s
}

// guarded lets in who has the token, and says to others what they came with.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if given := req.Header.Get("Authorization"); given != "Bearer "+secret {
			http.Error(w, "who is "+given+"?", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, req)
	})
}

func TestWrongHeaders(t *testing.T) {
	server := serveHTTP(t, guarded(httpHandler(usual(), nil)))
	const wrong = "wr0ng-token"
	r := reach(t, server.URL+"/mcp?key=hidden", mcp.Options{Headers: map[string]string{"authorization": "Bearer ${TOKEN}"}, Env: map[string]string{"TOKEN": wrong}})
	_, err := r.List(t.Context())
	require.EqualError(t, err, "the MCP server tickets refuses the handshake ("+server.URL+"/mcp): 401 Unauthorized: who is [Authorization]?")
	require.NotContains(t, r.log.String(), wrong)
	require.NotContains(t, r.log.String(), "hidden")

	// It is not the form of the handshake that is refused: there is no other try.
	r = reach(t, server.URL, mcp.Options{Elicit: mcp.ElicitRounds})
	_, err = r.List(t.Context())
	require.ErrorContains(t, err, "401 Unauthorized")
	require.NotContains(t, r.log.String(), "trying another")

	// A token that ends while there is a session.
	var valid atomic.Bool
	valid.Store(true)
	inner := httpHandler(usual(), nil)
	server = serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !valid.Load() {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"expired: %s"}}`, req.Header.Get("X-Key"))
			return
		}
		inner.ServeHTTP(w, req)
	}))
	r = reach(t, server.URL, mcp.Options{Headers: map[string]string{"X-Key": secret}})
	r.ok(t, "echo", "x")
	valid.Store(false)
	_, err = r.call(t.Context(), "echo", "x")
	require.ErrorIs(t, err, agent.CodeDenied)
	require.ErrorContains(t, err, "the MCP server tickets refused: 403 Forbidden: expired: [X-Key]")
	valid.Store(true)
	r.ok(t, "echo", "x")
	require.Equal(t, 1, strings.Count(r.log.String(), "MCP session began"), "one refused call does not end the session")
}

// teller is a server that says wherever it can how it was addressed.
func teller() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "teller", Version: "1"}, nil)
	add := func(name string, h handlerWithHeader) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "wants " + secret}, func(ctx context.Context, req *sdk.CallToolRequest, _ input) (*sdk.CallToolResult, any, error) {
			result, err := h(ctx, req, req.Extra.Header.Get("Authorization"))
			return result, nil, err
		})
	}
	add("result", func(_ context.Context, _ *sdk.CallToolRequest, given string) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: given}, &sdk.ResourceLink{Name: given, URI: "x:" + given}}}, nil
	})
	add("structured", func(_ context.Context, _ *sdk.CallToolRequest, given string) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: map[string]any{"given": given}}, nil
	})
	add("failure", func(_ context.Context, _ *sdk.CallToolRequest, given string) (*sdk.CallToolResult, error) {
		return nil, fmt.Errorf("no entry for %s", given)
	})
	add("progress", func(ctx context.Context, req *sdk.CallToolRequest, given string) (*sdk.CallToolResult, error) {
		err := req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1, Message: given})
		<-ctx.Done()
		return nil, err
	})
	return s
}

type handlerWithHeader = func(context.Context, *sdk.CallToolRequest, string) (*sdk.CallToolResult, error)

func TestSecretsAreCutOut(t *testing.T) {
	server := serveHTTP(t, guarded(httpHandler(teller(), nil)))
	r := reach(t, server.URL, mcp.Options{Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}, Env: map[string]string{"TOKEN": secret}})
	specs, err := r.List(t.Context())
	require.NoError(t, err)
	listed, err := json.Marshal(specs)
	require.NoError(t, err)
	require.NotContains(t, string(listed), secret)
	require.Contains(t, specs[0].Description, "wants [TOKEN]")
	require.Equal(t, "[Authorization]\n[link to [Authorization], x:[Authorization]]", r.ok(t, "result", ""))
	require.Equal(t, `{"given":"[Authorization]"}`, r.ok(t, "structured", ""))
	_, err = r.call(t.Context(), "failure", "")
	require.EqualError(t, err, "no entry for [Authorization]")
	said := make(chan string, 1)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = r.Call(ctx, tool.Call{Tool: "tickets__progress"}.With(&toolcall.Hooks{Progress: func(note string) {
		said <- note
		cancel()
	}}))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "1: [Authorization]", <-said)
	require.NotContains(t, r.log.String(), secret)
}

// Neither headers nor arguments reach a server that is redirected to.
func TestRedirects(t *testing.T) {
	inner := guarded(httpHandler(usual(), nil))
	var strayed atomic.Int32
	other := serveHTTP(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	var to atomic.Value
	to.Store("")
	server := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(body))
		switch target := to.Load().(string); {
		case err != nil || req.URL.Path == "/mcp/":
			inner.ServeHTTP(w, req)
		case target != "" && bytes.Contains(body, []byte("tools/call")):
			http.Redirect(w, req, target, http.StatusTemporaryRedirect)
		case req.URL.Path == "/found":
			http.Redirect(w, req, "/mcp/", http.StatusFound)
		default:
			http.Redirect(w, req, "/mcp/", http.StatusTemporaryRedirect)
		}
	}))
	o := mcp.Options{Headers: map[string]string{"Authorization": "Bearer " + secret}}
	r := reach(t, server.URL+"/mcp", o)
	r.ok(t, "echo", "within the server headers go along")
	to.Store(other.URL + "/mcp")
	_, err := r.call(t.Context(), "echo", "x")
	require.ErrorIs(t, err, agent.CodeDenied)
	require.ErrorContains(t, err, "the MCP server tickets refused: it redirects to "+other.URL+", which is another server; if that is right, use its URL")
	to.Store(strings.Replace(server.URL, "127.0.0.1", "localhost", 1) + "/mcp/")
	_, err = r.call(t.Context(), "echo", "x")
	require.ErrorIs(t, err, agent.CodeDenied, "another name is another server")
	require.Zero(t, strayed.Load())

	_, err = reach(t, server.URL+"/found", o).List(t.Context())
	require.ErrorContains(t, err, "it redirects to /mcp/ in a way that loses the request")
	_, err = reach(t, other.URL, o).List(t.Context())
	require.Error(t, err, "a page that is no MCP server")
}

func TestFaultyAddresses(t *testing.T) {
	for url, words := range map[string]string{
		"":                               "its URL must be https:// with a host",
		"tickets.example.com/mcp":        "its URL must be https:// with a host",
		"ftp://tickets.example.com":      "its URL must be https:// with a host",
		"https://":                       "its URL must be https:// with a host",
		"http://tickets.example.com/mcp": "its URL is http:// on another machine",
		"https://me:pass@example.com":    "its URL has a user or a password in it",
	} {
		s := mcp.NewHTTP("tickets", url, nil)
		require.ErrorIs(t, s.Err(), agent.CodeInvalidInput, url)
		require.ErrorContains(t, s.Err(), words, url)
		_, err := s.List(t.Context())
		require.Equal(t, s.Err(), err)
		require.NoError(t, s.Close())
	}
	for _, url := range []string{"http://localhost:1/mcp", "http://127.0.0.1:1", "http://[::1]:1", "https://tickets.example.com/mcp"} {
		require.NoError(t, mcp.NewHTTP("tickets", url, nil).Err(), url)
	}
	require.NoError(t, mcp.NewHTTP("tickets", "http://tickets.internal", &mcp.Options{Plain: true}).Err())
	require.ErrorIs(t, mcp.NewHTTP("a__b", "https://example.com", nil).Err(), agent.CodeInvalidInput)

	for name, fault := range map[string]struct{ value, words string }{
		"X-A":            {"${NOT_THERE}", "the header X-A names the variable NOT_THERE, which has no value"},
		"X-B":            {"a\nb", "the value of the header X-B has a line break"},
		"a b":            {"x", `"a b" is not the name of a header`},
		"mcp-session-id": {"x", "the header mcp-session-id is the protocol's own"},
		"Content-Type":   {"x", "the header Content-Type is the protocol's own"},
	} {
		err := mcp.NewHTTP("tickets", "https://example.com", &mcp.Options{Headers: map[string]string{name: fault.value}}).Err()
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		require.ErrorContains(t, err, fault.words)
	}
	err := mcp.NewHTTP("tickets", "https://example.com", &mcp.Options{Headers: map[string]string{"X-A": "1", "x-a": "2"}}).Err()
	require.ErrorContains(t, err, "is there twice")
}
