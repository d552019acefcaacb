package anthropic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/standin"
)

// A model that agents know by another name is given its own thoughts back.
func TestAlias(t *testing.T) {
	thinks := stream(begin, open(0, `{"type":"thinking","thinking":"","signature":""}`),
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"b2xk"}}`, stop(0),
		open(1, use("toolu_1", "weather")), input(1, `{}`), stop(1), because("tool_use"), end)
	for _, body := range standin.Aliased(t, at, standin.Answer(200, "text/event-stream", thinks), "claude-sonnet-5-5") {
		require.Contains(t, string(body), "b2xk")
	}
}
