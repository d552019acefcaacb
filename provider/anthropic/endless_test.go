package anthropic_test

import (
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/internal/standin"
)

func TestEndless(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	begin := stream(
		`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"pay","input":{}}}`)
	standin.Endless(t, at, ask("Hello"), key, begin, map[string]string{
		"arguments": stream(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"` + long + `"}}`),
		"signature": stream(`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"` + long + `"}}`),
		"blocks":    stream(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"pay","input":{}}}`),
		"steps":     stream(`{"type":"content_block_start","index":0,"content_block":{"type":"web_search_tool_result","tool_use_id":"` + long + `"}}`),
	})
}
