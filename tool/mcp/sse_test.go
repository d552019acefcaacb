//go:build unix

package mcp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
)

// A server of the transport that came before the streamable one is found out by itself.
func TestOldTransport(t *testing.T) {
	echo := sdk.NewServer(&sdk.Implementation{Name: "echo", Version: "1"}, nil)
	sdk.AddTool(echo, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, in struct {
		Text string `json:"text"`
	}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "heard " + in.Text}}}, nil, nil
	})
	old := sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return echo }, nil)
	for _, status := range []int{400, 404, 405} {
		server := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && r.URL.RawQuery == "" {
				http.Error(w, "what is this", status)
				return
			}
			old.ServeHTTP(w, r)
		}))
		r := reach(t, server.URL+"/sse", mcp.Options{Headers: map[string]string{"X-Key": "${KEY}"}, Env: map[string]string{"KEY": "s3cret-of-the-server"}})
		require.Equal(t, "heard x", r.ok(t, "echo", "x"))
		require.Equal(t, "heard y", r.ok(t, "echo", "y"), "after the handshake's time")

		server.CloseClientConnections() // and with them the server's session
		text, err := r.call(t.Context(), "echo", "z")
		if err != nil { // a call that the break comes into may have been heard
			require.ErrorIs(t, err, tool.ErrUnknown)
			text = r.ok(t, "echo", "z")
		}
		require.Equal(t, "heard z", text)
	}
}

// It may name any address for what is sent to it, and gets nothing sent elsewhere.
func TestOldTransportElsewhere(t *testing.T) {
	var got bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got = true }))
	defer other.Close()
	server := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			http.Error(w, "", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("event: endpoint\ndata: " + other.URL + "/take\n\n"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	r := reach(t, server.URL+"/sse", mcp.Options{})
	_, err := r.List(t.Context())
	require.Error(t, err)
	require.False(t, got)
}
