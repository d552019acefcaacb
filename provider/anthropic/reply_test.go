package anthropic_test

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
	begin = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}`
	ping  = `{"type":"ping"}`
	end   = `{"type":"message_stop"}`
)

func open(i int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block)
}

func delta(i int, kind, field, value string) string {
	b, _ := json.Marshal(value)
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, i, kind, field, b)
}

func text(i int, s string) string      { return delta(i, "text_delta", "text", s) }
func input(i int, s string) string     { return delta(i, "input_json_delta", "partial_json", s) }
func thinking(i int, s string) string  { return delta(i, "thinking_delta", "thinking", s) }
func signature(i int, s string) string { return delta(i, "signature_delta", "signature", s) }
func stop(i int) string                { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i) }

func because(reason string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":25}}`, reason)
}

func use(id, tool string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, tool)
}

func citation(i int, source string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"citations_delta","citation":%s}}`, i, source)
}

// A search of the provider's own, and what it found.
const (
	serverUse = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`
	found     = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://a.example","title":"A","encrypted_content":"ZW5j"}]}`
)

const textBlock = `{"type":"text","text":""}`

var plainUsage = agent.Usage{Input: 10, Output: 25}

var replies = []struct {
	name   string
	events []string
	want   model.Reply
}{{
	name:   "text",
	events: []string{begin, open(0, textBlock), ping, text(0, "Hello"), text(0, ", wörld"), stop(0), because("end_turn"), end},
	want:   model.Reply{Parts: []agent.Part{said("Hello, wörld")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name:   "empty text block",
	events: []string{begin, open(0, textBlock), stop(0), open(1, textBlock), text(1, "x"), stop(1), because("stop_sequence"), end},
	want:   model.Reply{Parts: []agent.Part{said("x")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name: "calls in pieces, one within the other",
	events: []string{begin, open(0, textBlock), text(0, "Let me look."), stop(0),
		open(1, use("toolu_1", "weather")), input(1, ""), input(1, `{"city"`),
		open(2, use("toolu_2", "time")), input(2, `{"zone":"`), input(1, `:"Rome"}`), stop(1), input(2, `CET"}`), stop(2),
		because("tool_use"), end},
	want: model.Reply{Parts: []agent.Part{said("Let me look."),
		model.CallPart("toolu_1", "weather", `{"city":"Rome"}`), model.CallPart("toolu_2", "time", `{"zone":"CET"}`)},
		Finish: model.FinishToolCalls, Usage: plainUsage},
}, {
	name: "calls without arguments, with broken ones, and with all at once",
	events: []string{begin, open(0, use("a", "now")), stop(0), open(1, use("b", "pay")), input(1, `{"amount": 5`), stop(1),
		open(2, `{"type":"tool_use","id":"c","name":"pay","input":{"amount":7}}`), stop(2), because("tool_use"), end},
	want: model.Reply{Parts: []agent.Part{model.CallPart("a", "now", ""), model.CallPart("b", "pay", `{"amount": 5`), model.CallPart("c", "pay", `{"amount":7}`)},
		Finish: model.FinishToolCalls, Usage: plainUsage},
}, {
	name: "ids missing and repeated, another reason to stop",
	events: []string{begin, open(0, `{"type":"tool_use","name":"f","input":{}}`), input(0, `{"n":1}`), stop(0),
		open(1, use("same", "f")), input(1, `{"n":2}`), stop(1), open(2, use("same", "f")), input(2, `{"n":3}`), stop(2), because("end_turn"), end},
	want: model.Reply{Parts: []agent.Part{model.CallPart("", "f", `{"n":1}`), model.CallPart("same", "f", `{"n":2}`), model.CallPart("same", "f", `{"n":3}`)},
		Finish: model.FinishToolCalls, Usage: plainUsage},
}, {
	name: "every index missing",
	events: []string{begin,
		`{"type":"content_block_start","content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hm."}}`,
		`{"type":"content_block_start","content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`, `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"n\":1}"}}`,
		because("tool_use"), end},
	want: model.Reply{Parts: []agent.Part{said("Hm."), model.CallPart("a", "f", `{"n":1}`)}, Finish: model.FinishToolCalls, Usage: plainUsage},
}, {
	name:   "a block that was never begun",
	events: []string{begin, text(0, "Hello"), because("end_turn"), end},
	want:   model.Reply{Parts: []agent.Part{said("Hello")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name: "thinking with a signature, hidden thinking, and redacted thinking",
	events: []string{begin, open(0, `{"type":"thinking","thinking":"","signature":""}`), thinking(0, "Two and "), thinking(0, "two."), signature(0, "c2ln"), stop(0),
		open(1, `{"type":"thinking","thinking":"","signature":""}`), signature(1, "aGlk"), stop(1),
		open(2, `{"type":"redacted_thinking","data":"cmVk"}`), stop(2), open(3, textBlock), text(3, "Four."), stop(3), because("end_turn"), end},
	want: model.Reply{Parts: []agent.Part{
		{Type: agent.PartThinking, Text: "Two and two.", Signature: "c2ln"}, {Type: agent.PartThinking, Signature: "aGlk"},
		{Type: agent.PartThinking, Redacted: "cmVk"}, said("Four.")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name:   "window full",
	events: []string{begin, open(0, textBlock), text(0, "x"), because("model_context_window_exceeded"), end},
	want:   model.Reply{Parts: []agent.Part{said("x")}, Finish: model.FinishLength, Usage: plainUsage},
}, {
	name:   "paused",
	events: []string{begin, open(0, textBlock), text(0, "x"), because("pause_turn"), end},
	want:   model.Reply{Parts: []agent.Part{said("x")}, Finish: model.FinishPauseTurn, Usage: plainUsage},
}, {
	name: "citations that name no source",
	events: []string{begin, open(0, `{"type":"text","text":"","citations":null}`), `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta"}}`, text(0, "x"),
		citation(0, `null`), stop(0), because("end_turn"), end},
	want: model.Reply{Parts: []agent.Part{said("x")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name:   "paused beside a call of ours",
	events: []string{begin, open(0, use("toolu_1", "f")), input(0, "{}"), stop(0), because("pause_turn"), end},
	want:   model.Reply{Parts: []agent.Part{model.CallPart("toolu_1", "f", "{}")}, Finish: model.FinishToolCalls, Usage: plainUsage},
}, {
	name: "a search, with what it found and what the text cites of it",
	events: []string{begin, open(0, serverUse), input(0, ""), input(0, `{"query":"weath`), input(0, `er"}`), stop(0), open(1, found), stop(1),
		open(2, `{"type":"text","text":"","citations":[]}`), citation(2, `{"type":"web_search_result_location","url":"https://a.example","title":"A","encrypted_index":"aWR4","cited_text":"Sun."}`),
		text(2, "Sunny."), stop(2), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":25,"server_tool_use":{"web_search_requests":2}}}`, end},
	want: model.Reply{Parts: []agent.Part{
		{Type: agent.PartServerTool, Text: `web_search {"query":"weather"}`, Raw: json.RawMessage(`{"id":"srvtoolu_1","input":{"query":"weather"},"name":"web_search","type":"server_tool_use"}`)},
		{Type: agent.PartServerTool, Text: "web_search_tool_result", Raw: json.RawMessage(found)},
		{Type: agent.PartText, Text: "Sunny.", Raw: json.RawMessage(`[{"type":"web_search_result_location","url":"https://a.example","title":"A","encrypted_index":"aWR4","cited_text":"Sun."}]`),
			Citations: []agent.Citation{{End: 6, URL: "https://a.example", Title: "A", Text: "Sun."}}},
	}, Finish: model.FinishStop, Usage: agent.Usage{Input: 10, Output: 25, Searches: 2}},
}, {
	name:   "refused, with a text",
	events: []string{begin, open(0, textBlock), text(0, "I can't"), because("refusal"), end},
	want:   model.Reply{Parts: []agent.Part{said("I can't")}, Finish: model.FinishContentFilter, Usage: plainUsage},
}, {
	name: "refused, with a reason",
	events: []string{begin, `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"Against the policy."}},"usage":{"output_tokens":25}}`,
		end},
	want: model.Reply{Parts: []agent.Part{said("Against the policy.")}, Finish: model.FinishContentFilter, Usage: plainUsage},
}, {
	name: "unknown blocks and events",
	events: []string{begin, `{"type":"weather_report","sunny":true}`, open(0, `{"type":"hologram","id":"s","input":{}}`), input(0, `{"q":1}`), stop(0),
		open(1, textBlock), text(1, "x"), stop(1), because("end_turn"), end},
	want: model.Reply{Parts: []agent.Part{said("x")}, Finish: model.FinishStop, Usage: plainUsage},
}}

func TestReplies(t *testing.T) {
	for _, c := range replies {
		t.Run(c.name, func(t *testing.T) {
			body := stream(c.events...)
			for name, answer := range map[string]string{
				"as it is":           body,
				"with CRLF":          strings.ReplaceAll(body, "\n", "\r\n"),
				"with comments":      strings.ReplaceAll(body, "event:", ": keep-alive\n\nevent:"),
				"without event line": stripEvents(body),
			} {
				for _, n := range []int{0, 7} {
					m, _ := serve(t, standin.Drip(answer, n))
					reply, h := standin.Reply(t, m, ask("Hello"))
					standin.Same(t, fmt.Sprintf("%s, in pieces of %d", name, n), reply, &c.want, h)
				}
			}
		})
	}
}

func stripEvents(body string) string {
	var b strings.Builder
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "event:") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// A server that does not stream is understood, too.
func TestWholeReply(t *testing.T) {
	m, _ := serve(t, standin.Answer(200, "application/json", `{"id":"msg_1","type":"message","role":"assistant","model":"x",
		"content":[{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"text","text":"Hello"},{"type":"tool_use","id":"a","name":"f","input":{"n":1}}],
		"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":25}}`))
	reply, h := standin.Reply(t, m, ask("Hello"))
	standin.Same(t, "whole", reply, &model.Reply{
		Parts:  []agent.Part{{Type: agent.PartThinking, Text: "Hm.", Signature: "c2ln"}, said("Hello"), model.CallPart("a", "f", `{"n":1}`)},
		Finish: model.FinishToolCalls, Usage: plainUsage,
	}, h)
}
