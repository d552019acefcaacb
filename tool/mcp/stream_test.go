//go:build unix

package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// apart has tools whose requests belong to no call, as far as the transport knows: they
// come on the stream that a client opens by GET.
func apart() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "apart", Version: "1"}, nil)
	s.AddReceivingMiddleware(noDiscover)
	add := func(name string, ask func(context.Context, *sdk.ServerSession) (string, error)) {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			said, err := ask(ctx, req.Session)
			if err != nil {
				said = err.Error()
			}
			return text(said), nil
		})
	}
	add("ask", func(ctx context.Context, ss *sdk.ServerSession) (string, error) {
		r, err := ss.Elicit(ctx, sure)
		if err != nil {
			return "", err
		}
		return r.Action, nil
	})
	add("roots", func(ctx context.Context, ss *sdk.ServerSession) (string, error) {
		//nolint:staticcheck // servers of older protocols ask it
		r, err := ss.ListRoots(ctx, nil)
		return fmt.Sprint(r), err
	})
	add("sample", func(ctx context.Context, ss *sdk.ServerSession) (string, error) {
		//nolint:staticcheck // servers of older protocols ask it
		r, err := ss.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 10})
		return fmt.Sprint(r), err
	})
	add("ping", func(ctx context.Context, ss *sdk.ServerSession) (string, error) { return "pong", ss.Ping(ctx, nil) })
	return s
}

// A server's requests on the stream that is opened by GET are heard while a call runs,
// and what is not offered is declined at once.
func TestRequestsOutsideOfACall(t *testing.T) {
	for kind, o := range map[string]*sdk.StreamableHTTPOptions{"streams": nil, "json": {JSONResponse: true}, "numbered": {EventStore: sdk.NewMemoryEventStore(nil)}} {
		t.Run(kind, func(t *testing.T) {
			var streams atomic.Int32
			inner := httpHandler(apart(), o)
			r := reach(t, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Method == http.MethodGet {
					streams.Add(1)
					defer streams.Add(-1)
				}
				inner.ServeHTTP(w, req)
			})).URL, mcp.Options{Elicit: mcp.ElicitReplay})
			_, err := r.List(t.Context())
			require.NoError(t, err)
			require.Zero(t, streams.Load(), "no stream is held while no call runs")
			require.Equal(t, "pong", r.ok(t, "ping", ""))
			require.Contains(t, r.ok(t, "roots", ""), `method not found: "roots/list"`)
			require.Contains(t, r.ok(t, "sample", ""), `method not found: "sampling/createMessage"`)
			d := &dialogue{t: t, rig: r, tool: "ask"}
			require.Equal(t, "Really?", d.asked().Text)
			require.Equal(t, "accept", d.answer(agent.ToolAnswer{Choice: new(int)}).done())
			require.NoError(t, r.Close())
			require.Eventually(t, func() bool { return streams.Load() == 0 && !clientLeft() }, soon, 5*time.Millisecond)
		})
	}
}

// A stream that breaks off, ends at once or is refused breaks no call.
func TestStreamThatBreaksOff(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"ends": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"jsonrpc\"") // half a message
		},
		"garbage": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: garbage\n\ndata: {}\n\n")
		},
		"huge": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: "+strings.Repeat("x", 17<<20))
		},
		"page":      func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"refused":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"taken":     func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusConflict) },
		"never":     func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() },
		"not there": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusMethodNotAllowed) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWaiter()
			release := sync.OnceFunc(func() { close(w.release) })
			defer release()
			inner := httpHandler(w.server(), nil)
			var asked atomic.Int32
			r := reach(t, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Method == http.MethodGet {
					asked.Add(1)
					answer(w, req)
					return
				}
				inner.ServeHTTP(w, req)
			})).URL, mcp.Options{})
			done := make(chan error, 1)
			go func() {
				_, err := r.call(t.Context(), "wait", "")
				done <- err
			}()
			<-w.begun
			again := map[string]int32{"ends": 3, "garbage": 3, "taken": 3}[name]
			require.Eventually(t, func() bool { return asked.Load() >= max(again, 1) }, soon, 5*time.Millisecond, "it is opened again while the call runs")
			require.Equal(t, "2", r.ok(t, "count", ""))
			release()
			require.NoError(t, <-done)
			require.Equal(t, 1, strings.Count(r.log.String(), "MCP session began"))
		})
	}
}
