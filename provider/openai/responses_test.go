package openai_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
)

const created = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"incomplete_details":null,"output":[],"usage":null}}`

func ended(kind, more string) string {
	return fmt.Sprintf(`{"type":"response.%s","response":{"id":"resp_1","object":"response","status":%q%s,
		"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":25,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":35}}}`, kind, kind, more)
}

func added(i int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, i, item)
}

func done(i int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item)
}

func written(kind string, i int, s string) string {
	b, _ := json.Marshal(s)
	return fmt.Sprintf(`{"type":"response.%s.delta","output_index":%d,"item_id":"m","content_index":0,"delta":%s}`, kind, i, b)
}

func message(s string) string {
	b, _ := json.Marshal(s)
	return fmt.Sprintf(`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, b)
}

func functionCall(id, tool, arguments string) string {
	b, _ := json.Marshal(arguments)
	return fmt.Sprintf(`{"type":"function_call","id":"fc_1","call_id":%q,"name":%q,"arguments":%s,"status":"completed"}`, id, tool, b)
}

var responseReplies = []struct {
	name   string
	events []string
	want   model.Reply
}{{
	name: "text",
	events: []string{created, added(0, `{"type":"message","id":"m","role":"assistant","content":[]}`), written("output_text", 0, "Hello"), written("output_text", 0, ", wörld"),
		`{"type":"response.output_text.done","output_index":0,"text":"Hello, wörld"}`, done(0, message("Hello, wörld")), ended("completed", "")},
	want: model.Reply{Parts: []agent.Part{said("Hello, wörld")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name: "reasoning, and calls that end in another order",
	events: []string{created, added(0, `{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"half"}`), written("reasoning_summary_text", 0, "Look it up."),
		done(0, `{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"Look it up."}],"encrypted_content":"d2hvbGU="}`),
		added(1, functionCall("call_a", "weather", "")), written("function_call_arguments", 1, `{"city":`), added(2, functionCall("call_b", "now", "")),
		done(2, functionCall("call_b", "now", "")), written("function_call_arguments", 1, `"Rome"}`), done(1, functionCall("call_a", "weather", `{"city":"Rome"}`)),
		ended("completed", "")},
	want: model.Reply{Parts: []agent.Part{{Type: agent.PartThinking, Text: "Look it up.", Signature: "d2hvbGU=", ProviderID: "rs"},
		model.CallPart("call_a", "weather", `{"city":"Rome"}`), model.CallPart("call_b", "now", "")}, Finish: model.FinishToolCalls, Usage: plainUsage},
}, {
	name:   "text whose item never comes",
	events: []string{created, written("reasoning_text", 0, "Hm."), written("output_text", 1, "Hello"), written("output_text", 1, ", wörld"), ended("completed", "")},
	want:   model.Reply{Parts: []agent.Part{{Type: agent.PartThinking, Text: "Hm."}, said("Hello, wörld")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name:   "text whose item says something else",
	events: []string{created, written("output_text", 0, " Hello"), done(0, message("Hello")), done(1, message(", wörld")), ended("completed", "")},
	want:   model.Reply{Parts: []agent.Part{said(" Hello"), said(", wörld")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name:   "text whose item has another number",
	events: []string{created, written("output_text", 0, "Hello"), done(1, message("Hello")), ended("completed", "")},
	want:   model.Reply{Parts: []agent.Part{said("Hello")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name:   "text whose item has another number at the end alone",
	events: []string{created, written("reasoning_text", 0, "Hm."), written("output_text", 0, "Hello"), ended("completed", `,"output":[{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"Hm."}]},`+message("Hello")+`]`)},
	want:   model.Reply{Parts: []agent.Part{{Type: agent.PartThinking, Text: "Hm."}, said("Hello")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name:   "items that come at the end alone",
	events: []string{created, written("output_text", 0, "Hello"), ended("completed", `,"output":[`+message("Hello")+`,`+functionCall("call_a", "now", "{}")+`]`)},
	want:   model.Reply{Parts: []agent.Part{said("Hello"), model.CallPart("call_a", "now", "{}")}, Finish: model.FinishToolCalls, Usage: plainUsage},
}, {
	name:   "a refusal whose item never comes",
	events: []string{created, written("refusal", 0, "I can't."), ended("completed", "")},
	want:   model.Reply{Parts: []agent.Part{said("I can't.")}, Finish: model.FinishContentFilter, Usage: plainUsage},
}, {
	name:   "nothing that is of use",
	events: []string{created, done(0, `{"type":"reasoning","id":"rs","summary":[]}`), done(1, `{"type":"hologram_call","id":"w","status":"completed"}`), ended("completed", "")},
	want:   model.Reply{Finish: model.FinishStop, Usage: plainUsage},
}, {
	name:   "filtered",
	events: []string{created, ended("incomplete", `,"incomplete_details":{"reason":"content_filter"}`)},
	want:   model.Reply{Finish: model.FinishContentFilter, Usage: plainUsage},
}, {
	name: "refused",
	events: []string{created, written("refusal", 0, "I can't."),
		done(0, `{"type":"message","id":"m","role":"assistant","content":[{"type":"refusal","refusal":"I can't."}]}`), ended("completed", "")},
	want: model.Reply{Parts: []agent.Part{said("I can't.")}, Finish: model.FinishContentFilter, Usage: plainUsage},
}}

var wholeResponse = events(created, written("output_text", 0, "Hello"), done(0, message("Hello")), ended("completed", ""))

func TestResponseReplies(t *testing.T) {
	for _, c := range responseReplies {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range []int{0, 7} {
				m, s := serveResponses(t, standin.Drip(events(c.events...), n))
				reply, h := standin.Reply(t, m, ask("Hello"))
				standin.Same(t, fmt.Sprintf("in pieces of %d", n), reply, &c.want, h)
				if s.Paths[0] != "/v1/responses" {
					t.Errorf("asked at %s", s.Paths[0])
				}
			}
		})
	}
}

func TestWholeResponse(t *testing.T) {
	m, _ := serveResponses(t, standin.Answer(200, "application/json", `{"id":"resp_1","object":"response","status":"completed","error":null,"output":[
		{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"eA=="},`+message("Hello")+`,`+functionCall("a", "f", `{"n":1}`)+`],
		"usage":{"input_tokens":10,"output_tokens":25,"total_tokens":35}}`))
	reply, h := standin.Reply(t, m, ask("Hello"))
	standin.Same(t, "whole", reply, &model.Reply{
		Parts:  []agent.Part{{Type: agent.PartThinking, Text: "Hm.", Signature: "eA==", ProviderID: "rs"}, said("Hello"), model.CallPart("a", "f", `{"n":1}`)},
		Finish: model.FinishToolCalls, Usage: plainUsage,
	}, h)
}

// Two texts at once can't be told apart by who hears them: it is as a stream that
// broke off.
func TestMixedUpItemsAreNoReply(t *testing.T) {
	m, s := serveResponses(t, standin.Drip(events(created, written("output_text", 1, "b"), written("output_text", 0, "a"), ended("completed", "")), 0))
	if fault := mustFail(t, m, s); fault.Provider.Kind != agent.FaultTransient {
		t.Errorf("got %s: %s", fault.Provider.Kind, fault.Message)
	}
}

func TestResponseFaults(t *testing.T) {
	for data, want := range map[string]agent.FaultKind{
		`{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null,"sequence_number":3}`:                           agent.FaultRateLimit,
		`{"type":"error","error":{"type":"server_error","code":"server_error","message":"oops"}}`:                                        agent.FaultTransient,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"oops"}}}`:                     agent.FaultTransient,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"no"}}}`:                     agent.FaultBadRequest,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"too much"}}}`:      agent.FaultContext,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"insufficient_quota","message":"no more"}}}`:            agent.FaultQuota,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"bio_policy","message":"no"}}}`:                         agent.FaultBadRequest,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"cyber_policy","message":"no"}}}`:                       agent.FaultBadRequest,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"misalignment_policy_violation","message":"no"}}}`:      agent.FaultBadRequest,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"data_residency_mismatch","message":"no"}}}`:            agent.FaultBadRequest,
		`{"type":"response.failed","response":{"status":"failed"}}`:                                                                      agent.FaultTransient,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow down, please"}}}`: agent.FaultRateLimit,
	} {
		m, s := serveResponses(t, standin.Drip(events(created, written("output_text", 0, "Hel"), data), 0))
		if fault := mustFail(t, m, s); fault.Provider.Kind != want {
			t.Errorf("%s: got %s: %s", data, fault.Provider.Kind, fault.Message)
		}
	}
	m, s := serveResponses(t, standin.Answer(200, "application/json", `{"status":"failed","error":{"code":"server_error","message":"oops"}}`))
	if fault := mustFail(t, m, s); fault.Provider.Kind != agent.FaultTransient || fault.Message != "openai broke off its reply: oops (server_error)" {
		t.Errorf("whole: got %s: %s", fault.Provider.Kind, fault.Message)
	}
	m, s = serveResponses(t, standin.Answer(400, "application/json", `{"error":{"message":"no","type":"invalid_request_error"}}`))
	if fault := mustFail(t, m, s); fault.Provider.Kind != agent.FaultBadRequest {
		t.Errorf("refused: got %s: %s", fault.Provider.Kind, fault.Message)
	}
}
