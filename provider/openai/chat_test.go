package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
)

const (
	begin   = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"llama","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}`
	counted = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"llama","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":25,"total_tokens":35}}`
	end     = `[DONE]`
)

func chunk(delta string) string {
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"llama","choices":[{"index":0,"delta":%s,"finish_reason":null}]}`, delta)
}

func field(name, s string) string {
	b, _ := json.Marshal(s)
	return chunk(fmt.Sprintf(`{%q:%s}`, name, b))
}

func text(s string) string { return field("content", s) }

func calls(list ...string) string { return chunk(`{"tool_calls":[` + strings.Join(list, ",") + `]}`) }

// piece is a piece of a call; fields that are empty, and a negative index, are left out.
func piece(index int, id, tool, arguments string) string {
	c := map[string]any{"type": "function"}
	f := map[string]any{}
	if index >= 0 {
		c["index"] = index
	}
	if id != "" {
		c["id"] = id
	}
	if tool != "" {
		f["name"] = tool
	}
	if arguments != "" {
		f["arguments"] = arguments
	}
	c["function"] = f
	b, _ := json.Marshal(c)
	return string(b)
}

func because(reason string) string {
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"llama","choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
}

var plainUsage = agent.Usage{Input: 10, Output: 25}

var chatReplies = []struct {
	name   string
	chunks []string
	want   model.Reply
}{{
	name:   "text",
	chunks: []string{begin, text("Hello"), text(", wörld"), because("stop"), counted, end},
	want:   model.Reply{Parts: []agent.Part{said("Hello, wörld")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name:   "no end but a reason, and no usage",
	chunks: []string{begin, text("Hello"), because("stop")},
	want:   model.Reply{Parts: []agent.Part{said("Hello")}, Finish: model.FinishStop},
}, {
	name:   "nothing said",
	chunks: []string{begin, because("stop"), counted, end},
	want:   model.Reply{Finish: model.FinishStop, Usage: plainUsage},
}, {
	name: "the usage beside a choice, growing, and an error that is none",
	chunks: []string{
		`{"choices":[{"index":0,"delta":{"content":"Hi"}}],"error":null,"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":25,"total_tokens":35}}`, end},
	want: model.Reply{Parts: []agent.Part{said("Hi")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name:   "usage in the choice, Kimi",
	chunks: []string{begin, text("x"), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":10,"completion_tokens":25,"total_tokens":35,"cached_tokens":4}}]}`, end},
	want:   model.Reply{Parts: []agent.Part{said("x")}, Finish: model.FinishStop, Usage: agent.Usage{Input: 10, Output: 25, CacheRead: 4}},
}, {
	name:   "usage in a frame of its own, Groq",
	chunks: []string{begin, text("x"), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r","usage":{"prompt_tokens":10,"completion_tokens":25,"total_tokens":35}}}`, end},
	want:   model.Reply{Parts: []agent.Part{said("x")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name:   "the cache in words of its own, DeepSeek",
	chunks: []string{begin, text("x"), because("stop"), `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":25,"total_tokens":35,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":2}}`, end},
	want:   model.Reply{Parts: []agent.Part{said("x")}, Finish: model.FinishStop, Usage: agent.Usage{Input: 10, Output: 25, CacheRead: 8}},
}, {
	name:   "the cache in another provider's words, LiteLLM",
	chunks: []string{begin, text("x"), because("stop"), `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":25,"total_tokens":35,"cache_read_input_tokens":5,"cache_creation_input_tokens":3}}`, end},
	want:   model.Reply{Parts: []agent.Part{said("x")}, Finish: model.FinishStop, Usage: agent.Usage{Input: 10, Output: 25, CacheRead: 5, CacheWrite: 3}},
}, {
	name: "usage with the cache and with reasoning",
	chunks: []string{begin, text("x"), because("stop"),
		`{"choices":[],"usage":{"prompt_tokens":4312,"completion_tokens":500,"total_tokens":4812,"prompt_tokens_details":{"cached_tokens":4000,"cache_write_tokens":300},"completion_tokens_details":{"reasoning_tokens":420}}}`, end},
	want: model.Reply{Parts: []agent.Part{said("x")}, Finish: model.FinishStop,
		Usage: agent.Usage{Input: 4312, Output: 500, CacheRead: 4000, CacheWrite: 300, Reasoning: 420}},
}, {
	name: "reasoning that is no output",
	chunks: []string{begin, text("x"), because("stop"),
		`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":115,"completion_tokens_details":{"reasoning_tokens":100}}}`, end},
	want: model.Reply{Parts: []agent.Part{said("x")}, Finish: model.FinishStop, Usage: agent.Usage{Input: 10, Output: 105, Reasoning: 100}},
}, {
	name: "calls in pieces, one within the other",
	chunks: []string{begin, text("Let me look."), calls(piece(0, "call_a", "weather", "")), calls(piece(0, "", "", `{"city"`)),
		calls(piece(1, "call_b", "time", `{"zone":"`)), calls(piece(0, "", "", `:"Rome"}`), piece(1, "", "", `CET"}`)), because("tool_calls"), counted, end},
	want: model.Reply{Parts: []agent.Part{said("Let me look."), model.CallPart("call_a", "weather", `{"city":"Rome"}`), model.CallPart("call_b", "time", `{"zone":"CET"}`)},
		Finish: model.FinishToolCalls, Usage: plainUsage},
}, {
	name: "calls without arguments and with broken ones, another reason to stop",
	chunks: []string{begin, calls(piece(0, "a", "now", "")), calls(piece(1, "b", "pay", `{"amount": 5`)),
		because("stop"), counted, end},
	want: model.Reply{Parts: []agent.Part{model.CallPart("a", "now", ""), model.CallPart("b", "pay", `{"amount": 5`)}, Finish: model.FinishToolCalls, Usage: plainUsage},
}, {
	name: "ids missing and repeated",
	chunks: []string{begin, calls(piece(0, "", "f", `{"n":1}`)), calls(piece(1, "same", "f", `{"n":`)), calls(piece(1, "same", "", `2}`)),
		calls(piece(2, "same", "f", `{"n":3}`)), because("tool_calls"), counted, end},
	want: model.Reply{Parts: []agent.Part{model.CallPart("", "f", `{"n":1}`), model.CallPart("same", "f", `{"n":2}`), model.CallPart("same", "f", `{"n":3}`)},
		Finish: model.FinishToolCalls, Usage: plainUsage},
}, {
	name: "all calls have the index 0",
	chunks: []string{begin, calls(piece(0, "a", "f", `{"n":1}`)), calls(piece(0, "b", "f", ``)), calls(piece(0, "", "", `{"n":2}`)),
		calls(piece(0, "", "g", `{"n":3}`), piece(0, "", "g", `{"n":4}`)), because("stop"), counted, end},
	want: model.Reply{Parts: []agent.Part{model.CallPart("a", "f", `{"n":1}`), model.CallPart("b", "f", `{"n":2}`), model.CallPart("", "g", `{"n":3}`), model.CallPart("", "g", `{"n":4}`)},
		Finish: model.FinishToolCalls, Usage: plainUsage},
}, {
	name: "no call has an index",
	chunks: []string{begin, calls(piece(-1, "a", "f", `{"n":`)), calls(piece(-1, "", "", `1}`)), calls(piece(-1, "b", "f", `{"n":`)), calls(piece(-1, "a", "", ` `)),
		calls(piece(-1, "b", "", `2}`)), calls(piece(-1, "", "g", "")), because("tool_calls"), counted, end},
	want: model.Reply{Parts: []agent.Part{model.CallPart("a", "f", `{"n":1} `), model.CallPart("b", "f", `{"n":2}`), model.CallPart("", "g", "")},
		Finish: model.FinishToolCalls, Usage: plainUsage},
}, {
	name: "name and id in every piece",
	chunks: []string{begin, calls(piece(0, "a", "f", `{"n"`)), calls(piece(0, "a", "f", `:1}`)), calls(piece(0, "a", "f", "")),
		because("tool_calls"), counted, end},
	want: model.Reply{Parts: []agent.Part{model.CallPart("a", "f", `{"n":1}`)}, Finish: model.FinishToolCalls, Usage: plainUsage},
}, {
	name:   "thinking under both names",
	chunks: []string{begin, field("reasoning_content", "Two and "), field("reasoning", "two."), text("Four."), because("stop"), counted, end},
	want: model.Reply{Parts: []agent.Part{{Type: agent.PartThinking, Text: "Two and two."}, said("Four.")},
		Finish: model.FinishStop, Usage: plainUsage},
}, {
	name:   "refused",
	chunks: []string{begin, field("refusal", "I can't "), field("refusal", "do that."), because("stop"), counted, end},
	want:   model.Reply{Parts: []agent.Part{said("I can't do that.")}, Finish: model.FinishContentFilter, Usage: plainUsage},
}, {
	name:   "filtered",
	chunks: []string{begin, text("Well, "), because("content_filter"), counted, end},
	want:   model.Reply{Parts: []agent.Part{said("Well, ")}, Finish: model.FinishContentFilter, Usage: plainUsage},
}, {
	name: "other choices, and fields of others",
	chunks: []string{`{"object":"x","prompt_filter_results":[]}`, `{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"stop"}]}`,
		`{"choices":[{"index":0,"delta":{"content":"yes","reasoning":null,"reasoning_details":[]},"finish_reason":"eos","native_finish_reason":"STOP"}]}`, counted, end},
	want: model.Reply{Parts: []agent.Part{said("yes")}, Finish: model.FinishStop, Usage: plainUsage},
}}

func TestChatReplies(t *testing.T) {
	for _, c := range chatReplies {
		t.Run(c.name, func(t *testing.T) {
			body := stream(c.chunks...)
			for name, answer := range map[string]string{
				"as it is":      body,
				"with CRLF":     strings.ReplaceAll(body, "\n", "\r\n"),
				"with comments": strings.ReplaceAll(body, "data:", ": OPENROUTER PROCESSING\n\ndata:"),
				"without space": strings.ReplaceAll(body, "data: ", "data:"),
			} {
				for _, n := range []int{0, 7} {
					m, s := serve(t, standin.Drip(answer, n))
					reply, h := standin.Reply(t, m, ask("Hello"))
					standin.Same(t, fmt.Sprintf("%s, in pieces of %d", name, n), reply, &c.want, h)
					if s.Paths[0] != "/v1/chat/completions" {
						t.Errorf("asked at %s", s.Paths[0])
					}
				}
			}
		})
	}
}

// A server that does not stream is understood, too.
func TestWholeChat(t *testing.T) {
	m, _ := serve(t, standin.Answer(200, "application/json; charset=utf-8", `{"id":"c1","object":"chat.completion","created":1,"model":"llama","choices":[{"index":0,
		"message":{"role":"assistant","content":"Hello","reasoning_content":"Hm.","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\":1}"}}]},
		"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":25,"total_tokens":35}}`))
	reply, h := standin.Reply(t, m, ask("Hello"))
	standin.Same(t, "whole", reply, &model.Reply{
		Parts:  []agent.Part{{Type: agent.PartThinking, Text: "Hm."}, said("Hello"), model.CallPart("a", "f", `{"n":1}`)},
		Finish: model.FinishToolCalls, Usage: plainUsage,
	}, h)
}
