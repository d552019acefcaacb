package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
)

func TestATranscriptHasArgumentsDecoded(t *testing.T) {
	call := &agent.ToolCall{ID: "t1.1", Tool: "shell_run", Arguments: json.RawMessage(`{"command":"cd x \u0026\u0026 make \u003e out"}`)}
	m := agent.Message{Role: agent.RoleAssistant, Parts: []agent.Part{{Type: agent.PartToolCall, Call: call}}}
	require.Equal(t, "== assistant\n[call t1.1] shell_run\n│ {\n│   \"command\": \"cd x && make > out\"\n│ }", string(render.Message(m)))
}
