package openai_test

import (
	"testing"

	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/provider/openai"
)

// Whatever a server answers in the form of Chat Completions, it is a reply or a fault.
func FuzzChat(f *testing.F) {
	f.Add(200, uint8(0), []byte(stream(
		`{"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"hm","content":"Let me"}}]}`,
		`{"choices":[{"index":0,"delta":{"content":" see.","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\""}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}},{"index":1,"id":"call_2","function":{"name":"add","arguments":"{"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`,
		`[DONE]`,
	)))
	f.Add(200, uint8(0), []byte(stream(`{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"busy"}}}`)))
	f.Add(200, uint8(1), []byte(`{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"add","arguments":"no"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":-3,"total_tokens":2}}`))
	for i, code := range []string{"context_length_exceeded", "invalid_api_key", "payment_required", "insufficient_quota", "model_not_found", "rate_limit_exceeded"} {
		f.Add(400+i, uint8(1), []byte(`{"error":{"message":"Please try again in 1m2.5s","type":"invalid_request_error","code":"`+code+`"}}`))
	}
	f.Add(200, uint8(0), []byte(stream(
		`{"choices":[{"index":1,"delta":{"content":"other"}},{"index":0,"delta":{"reasoning":"hm","refusal":"No"}}]}`, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"add","arguments":"{}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"add","arguments":"{}{}"}}]},"finish_reason":"content_filter"}]}`, `[DONE]`,
	)))
	f.Add(429, uint8(1), []byte(`{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`))
	f.Add(400, uint8(1), []byte(`[{"error":{"code":400,"message":"a\nb"}}]`))
	f.Add(200, uint8(2), []byte("<html>"))
	f.Add(200, uint8(0), []byte(stream(begin, text(greeting), chunk(`{"annotations":[{"type":"url_citation","url_citation":`+urlOfRom+`}]}`), because("stop"), end)))
	fuzz(f, openai.ChatCompletions)
}

// Whatever a server answers in the form of Responses, it is a reply or a fault.
func FuzzResponses(f *testing.F) {
	f.Add(200, uint8(0), []byte(events(
		`{"type":"response.output_text.delta","delta":"Let me see."}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"call_1","name":"add","arguments":"{\"a\":1}"}}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"Let me see."}]}}`,
		`{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}}`,
	)))
	f.Add(200, uint8(0), []byte(events(
		`{"type":"response.reasoning_text.delta","delta":"hm","output_index":0}`, `{"type":"response.refusal.delta","delta":"No","output_index":1}`, `{"type":"response.output_text.delta","delta":"!","output_index":1}`,
		`{"type":"response.incomplete","response":{"status":"incomplete","output":[{"type":"reasoning","summary":[{"text":"so"}]},{"type":"message","content":[{"text":"x"}]}],"usage":{}}}`,
	)))
	f.Add(200, uint8(0), []byte(events(`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"no"}}}`)))
	f.Add(200, uint8(1), []byte(`{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[{"type":"reasoning","encrypted_content":"x","summary":[{"text":"hm"}]},{"type":"message","content":[{"type":"refusal","refusal":"No."}]}],"usage":{"input_tokens":-1}}`))
	f.Add(500, uint8(1), []byte(`{"error":{"message":"no","type":"server_error"}}`))
	f.Add(200, uint8(0), []byte(events(created, written("output_text", 0, greeting), done(0, content(greeting, urlOfRom+","+fileAtEnd, "x", ofSandbox)), ended("completed", ""))))
	fuzz(f, openai.Responses)
}

func fuzz(f *testing.F, api openai.API) {
	f.Fuzz(func(t *testing.T, status int, kind uint8, body []byte) {
		m := openai.New(&openai.Options{APIKey: key, BaseURL: "http://stand.in/v1", API: api, HTTPClient: standin.Canned(status, kind, body)})
		standin.Sound(t, m, ask("Hello"), key)
	})
}
