package anthropic_test

import (
	"testing"

	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/provider/anthropic"
)

// Whatever a server answers, it is a reply or a fault.
func FuzzAnswer(f *testing.F) {
	whole := stream(
		`{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_read_input_tokens":3,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Let me see."}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"add","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":12}}`,
		`{"type":"message_stop"}`,
	)
	f.Add(200, uint8(0), []byte(whole))
	f.Add(200, uint8(0), []byte(stream(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)))
	f.Add(200, uint8(1), []byte(`{"type":"message","content":[{"type":"tool_use","id":"toolu_1","name":"add","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}`))
	f.Add(200, uint8(1), []byte(`{"type":"message","content":[{"type":"text","text":"No."}],"stop_reason":"refusal","usage":{"input_tokens":-1}}`))
	for i, kind := range []string{"invalid_request_error", "authentication_error", "billing_error", "permission_error", "not_found_error", "overloaded_error"} {
		f.Add(400+i, uint8(1), []byte(`{"type":"error","error":{"type":"`+kind+`","message":"prompt is too long: your credit balance is too low"}}`))
	}
	f.Add(200, uint8(0), []byte(stream(
		`{"type":"message_start","message":{}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"eA=="}}`, `{"type":"ping"}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"x","name":"web_search","input":{}}}`, `{"type":"content_block_stop","index":3}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"add","input":{}}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":12}}`, `{"type":"message_stop"}`,
	)))
	f.Add(429, uint8(1), []byte(`{"type":"error","error":{"type":"rate_limit_error","message":"slow down\nplease"}}`))
	f.Add(502, uint8(2), []byte("<html>bad gateway</html>"))
	f.Add(302, uint8(3), []byte(nil))
	f.Add(200, uint8(0), []byte(stream(
		begin, open(0, `{"type":"text","text":"Grüße","citations":[{"type":"page_location","document_index":0,"document_title":"a","start_page_number":1,"end_page_number":2}]}`),
		citation(0, `{"type":"web_search_result_location","url":"https://a.example","cited_text":"x"}`), because("end_turn"), end)))
	f.Fuzz(func(t *testing.T, status int, kind uint8, body []byte) {
		m := anthropic.New(&anthropic.Options{APIKey: key, BaseURL: "http://stand.in", HTTPClient: standin.Canned(status, kind, body)})
		standin.Sound(t, m, ask("Hello"), key)
	})
}
