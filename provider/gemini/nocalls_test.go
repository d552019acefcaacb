package gemini_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
)

// A summary is asked for with the tools, which the provider has in its cache, and
// without leave to call them.
func TestNoCalls(t *testing.T) {
	m, s := serve(t, standin.Drip(whole, 0))
	req := ask("Hello")
	req.NoCalls = true
	standin.Reply(t, m, req)
	require.NotContains(t, string(s.Bodies[0]), `"functionCallingConfig":{"mode":"NONE"}`, "there are no tools")
	req.Tools = []agent.ToolSpec{now}
	standin.Reply(t, m, req)
	require.Contains(t, string(s.Bodies[1]), `"functionCallingConfig":{"mode":"NONE"}`)
}
