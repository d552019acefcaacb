package openai_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
)

// A summary is asked for with the tools, which the provider has in its cache, and
// without leave to call them.
func TestNoCalls(t *testing.T) {
	chat, chats := serve(t, standin.Drip(wholeChat, 0))
	response, responses := serveResponses(t, standin.Drip(wholeResponse, 0))
	req := ask("Hello")
	req.NoCalls = true
	standin.Reply(t, chat, req)
	standin.Reply(t, response, req)
	require.NotContains(t, string(chats.Bodies[0])+string(responses.Bodies[0]), "tool_choice", "there are no tools")
	req.Tools = []agent.ToolSpec{now}
	standin.Reply(t, chat, req)
	standin.Reply(t, response, req)
	for _, body := range [][]byte{chats.Bodies[1], responses.Bodies[1]} {
		require.True(t, strings.Contains(string(body), `"tool_choice":"none"`), "%s", body)
	}
}
