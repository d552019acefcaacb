package bedrock_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
)

var update = flag.Bool("update", false, "write testdata")

var call, result, assistant, thought, said = standin.Called, standin.Result, standin.Assistant, standin.Thought, standin.Said

var shown, files = standin.Files()

const mine = "bedrock/" + sonnet

var (
	half    = 0.5
	weather = agent.ToolSpec{Name: "weather", Description: "The weather of a city.",
		Input: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","description":"<name> & country"}},"required":["city"]}`)}
	now = agent.ToolSpec{Name: "now"}
)

// conversation has turns of every kind, over two runs whose calls count from one. Large
// numbers and the order of arguments stay as they were written.
var conversation = []agent.Message{
	agent.TextMessage(agent.RoleUser, "How is Rome?"),
	assistant(mine, thought("I should look.", "b2xk"), said("Let me look."), call("t1.1", "weather", `{"city":"Rome","at":12345678901234567890,"a":1.0}`), call("t1.2", "now", "")),
	{Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "weather", agent.CallOK, "21 °C"), result("t1.2", "now", agent.CallFailed, "")}},
	assistant(mine, said("Mild."), said("")),
	{Role: agent.RoleUser, Parts: []agent.Part{said("And Oslo?"), said("  "), said("In winter.")}},
	assistant(mine, thought("Look again.", "bmV3"), agent.Part{Type: agent.PartThinking, Redacted: "cmVk"}, thought("never signed", ""),
		call("t1.1", "weather", `{"city":`), thought("after a call", "bGF0ZQ=="), call("t1.2", "weather", `{"city":"Oslo"}`)),
	{Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "weather", agent.CallRejected, "the arguments are not JSON")}},
	{Role: agent.RoleTool, Parts: []agent.Part{result("t1.2", "weather", agent.CallOK, "")}},
}

func TestRequest(t *testing.T) {
	for _, c := range []struct {
		name string
		req  model.Request
	}{
		{"conversation", model.Request{
			Model: "eu.anthropic.claude-sonnet-4-6", Instructions: "Be brief.", Messages: conversation, Tools: []agent.ToolSpec{now, weather},
			MaxOutputTokens: 1000, Temperature: &half,
		}},
		{"recital", model.Request{ // the cache's marks and the thinking are those of the conversation before it
			Model: sonnet, Tools: []agent.ToolSpec{now},
			Messages: append(conversation[:3:3], standin.Recital()...),
		}},
		{"steered", model.Request{ // the user speaks while tools run: the results come first, and older thinking is left out
			Model: sonnet, Tools: []agent.ToolSpec{now},
			Messages: append([]agent.Message{conversation[0], conversation[1], agent.TextMessage(agent.RoleUser, "In Celsius, please.")}, conversation[2]),
		}},
		{"other_provider", model.Request{ // without tools, those that were called are declared
			Model: "amazon.nova-pro-v1:0", Instructions: "Be brief.", Messages: []agent.Message{
				agent.TextMessage(agent.RoleUser, "Go."), assistant("openai/gpt-6-sol", thought("theirs", "eHg="), call("t1.1", "now", "")),
				{Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "now", agent.CallUnknown, "nobody knows"), result("t9.9", "lost", agent.CallOK, "no call")}},
			},
		}},
		{"files", model.Request{Model: sonnet, Messages: shown, Files: files}},
		{"no_calls", model.Request{Model: "meta.llama4-maverick-17b-instruct-v1:0", Messages: conversation[:1], Tools: []agent.ToolSpec{weather}, NoCalls: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, s := serve(t, streams(whole...))
			standin.Reply(t, m, &c.req)
			standin.Golden(t, *update, c.name+".json", s.Bodies[0])
		})
	}
}

// A level of reasoning is sent in the words of the model's maker, with what goes with it.
func TestReasoning(t *testing.T) {
	for _, c := range []struct {
		model string
		level agent.Reasoning
		want  string
	}{
		{sonnet, "", `{"inferenceConfig":{"maxTokens":9000}}`},
		{sonnet, agent.ReasoningAuto, `{"inferenceConfig":{"maxTokens":9000},"additionalModelRequestFields":{"thinking":{"type":"adaptive"}}}`},
		{sonnet, agent.ReasoningXHigh, `{"inferenceConfig":{"maxTokens":9000},"outputConfig":{"effort":"xhigh"},"additionalModelRequestFields":{"thinking":{"type":"adaptive"}}}`},
		{sonnet, agent.ReasoningMax, `{"inferenceConfig":{"maxTokens":9000},"outputConfig":{"effort":"max"},"additionalModelRequestFields":{"thinking":{"type":"adaptive"}}}`},
		{sonnet, agent.ReasoningOff, `{"inferenceConfig":{"maxTokens":9000},"additionalModelRequestFields":{"thinking":{"type":"between_tools"}}}`},
		{"us.anthropic.claude-opus-5-5", agent.ReasoningOff, `{"inferenceConfig":{"maxTokens":9000},"outputConfig":{"effort":"low"},"additionalModelRequestFields":{"thinking":{"type":"adaptive"}}}`},
		{"anthropic.claude-opus-4-6-v1", agent.ReasoningOff, `{"inferenceConfig":{"maxTokens":9000,"temperature":0.5},"additionalModelRequestFields":{"thinking":{"type":"disabled"}}}`},
		{"anthropic.claude-haiku-4-5-20251001-v1:0", agent.ReasoningHigh, `{"inferenceConfig":{"maxTokens":9000},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":4500}}}`},
		{"global.amazon.nova-2-lite-v1:0", agent.ReasoningLow, `{"inferenceConfig":{"maxTokens":9000,"temperature":0.5},"additionalModelRequestFields":{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"low"}}}`},
		{"global.amazon.nova-2-lite-v1:0", agent.ReasoningXHigh, `{"additionalModelRequestFields":{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"high"}}}`},
		{"global.amazon.nova-2-lite-v1:0", agent.ReasoningOff, `{"inferenceConfig":{"maxTokens":9000,"temperature":0.5},"additionalModelRequestFields":{"reasoningConfig":{"type":"disabled"}}}`},
		{"openai.gpt-oss-120b-1:0", agent.ReasoningXHigh, `{"inferenceConfig":{"maxTokens":9000,"temperature":0.5},"additionalModelRequestFields":{"reasoning_effort":"high"}}`},
		{"meta.llama4-maverick-17b-instruct-v1:0", agent.ReasoningHigh, `{"inferenceConfig":{"maxTokens":9000,"temperature":0.5}}`},
	} {
		m, s := serve(t, streams(whole...))
		standin.Reply(t, m, &model.Request{Model: c.model, Reasoning: c.level, Messages: conversation[:1], MaxOutputTokens: 9000, Temperature: &half})
		var sent map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(s.Bodies[0], &sent))
		delete(sent, "messages")
		got, err := json.Marshal(sent)
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(got), "%s %s", c.model, c.level)
	}
}

// A budget of thinking is left out in a turn that another model began: it is refused.
func TestTheTurnOfAnotherModel(t *testing.T) {
	for by, want := range map[string]bool{"bedrock": true, "openai": false} {
		m, s := serve(t, streams(whole...))
		standin.Reply(t, m, &model.Request{Model: "anthropic.claude-haiku-4-5-20251001-v1:0", Reasoning: agent.ReasoningHigh, Messages: []agent.Message{
			conversation[0], assistant(by+"/x", thought("Hm.", "b2xk"), call("t1.1", "now", "")), {Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "now", agent.CallOK, "12:00")}}}})
		require.Equal(t, want, json.Valid(s.Bodies[0]) && containsThinking(s.Bodies[0]), string(s.Bodies[0]))
	}
}

func containsThinking(body []byte) bool {
	var in struct {
		AdditionalModelRequestFields struct{ Thinking *struct{ Type string } }
	}
	return json.Unmarshal(body, &in) == nil && in.AdditionalModelRequestFields.Thinking != nil
}

// What was sent once is sent again, except for the marks of the cache, which are few.
func TestCacheMarks(t *testing.T) {
	for name, want := range map[string]int{sonnet: 3, "amazon.nova-pro-v1:0": 1, "meta.llama4-maverick-17b-instruct-v1:0": 0} {
		m, s := serve(t, streams(whole...))
		standin.Reply(t, m, &model.Request{Model: name, Instructions: "Be brief.", Messages: conversation, Tools: []agent.ToolSpec{now}})
		n := 0
		var in any
		require.NoError(t, json.Unmarshal(s.Bodies[0], &in))
		visit(in, func(key string) {
			if key == "cachePoint" {
				n++
			}
		})
		require.Equal(t, want, n, name)
	}
}

func visit(node any, key func(string)) {
	switch node := node.(type) {
	case []any:
		for _, v := range node {
			visit(v, key)
		}
	case map[string]any:
		for k, v := range node {
			key(k)
			visit(v, key)
		}
	}
}

// The model is told the schema of its answer in its first request.
func TestOutputReachesTheModel(t *testing.T) {
	for _, name := range []string{sonnet, "amazon.nova-pro-v1:0"} {
		req := *ask("Hello")
		req.Model = name
		standin.OutputReaches(t, at, streams(whole...), req, []agent.ToolSpec{now, weather})
	}
}

// One tool with an odd schema does not make the provider refuse every request.
func TestOddTools(t *testing.T) {
	m, s := serve(t, streams(whole...))
	req := ask("Hello")
	req.Tools = standin.OddTools
	standin.Reply(t, m, req)
	var in struct {
		ToolConfig struct {
			Tools []struct {
				ToolSpec *struct {
					Name, Description string
					InputSchema       struct{ JSON json.RawMessage }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(s.Bodies[0], &in))
	n := 0
	for _, f := range in.ToolConfig.Tools {
		if f.ToolSpec != nil {
			n++
			require.Empty(t, standin.Faults(f.ToolSpec.InputSchema.JSON), f.ToolSpec.Name)
		}
	}
	require.Len(t, standin.OddTools, n)
	require.Contains(t, in.ToolConfig.Tools[0].ToolSpec.Description, string(standin.OddTools[0].Input))
}

// A model that agents know by another name is given its own thoughts back, signed or hidden.
func TestAlias(t *testing.T) {
	for mark, event := range map[string]string{"b2xk": thinking(0, "Hm.") + signature(0, "b2xk"), "cmVk": delta(0, `{"reasoningContent":{"redactedContent":"cmVk"}}`)} {
		for _, body := range standin.Aliased(t, at, streams(begin, event, stop(0), use(1, "tooluse_1", "weather"), input(1, `{}`), stop(1), because("tool_use"), used), sonnet) {
			require.Contains(t, string(body), mark)
		}
	}
}

func TestReplies(t *testing.T) {
	callOf := func(arguments string) agent.Part { return model.CallPart("tooluse_1", "weather", arguments) }
	usage := agent.Usage{Input: 10, Output: 25}
	for name, c := range map[string]struct {
		events []string
		want   model.Reply
	}{
		"text and a call":        {whole, model.Reply{Parts: []agent.Part{said("Hello"), callOf(`{"city":"Rome"}`)}, Finish: model.FinishToolCalls, Usage: usage}},
		"a call without input":   {[]string{begin, use(0, "tooluse_1", "weather"), stop(0), because("tool_use"), used}, model.Reply{Parts: []agent.Part{callOf("")}, Finish: model.FinishToolCalls, Usage: usage}},
		"large numbers":          {[]string{begin, use(0, "tooluse_1", "weather"), input(0, `{"n":12345678901234567890}`), because("tool_use"), used}, model.Reply{Parts: []agent.Part{callOf(`{"n":12345678901234567890}`)}, Finish: model.FinishToolCalls, Usage: usage}},
		"a stop that says stop":  {[]string{begin, use(0, "tooluse_1", "weather"), because("end_turn"), used}, model.Reply{Parts: []agent.Part{callOf("")}, Finish: model.FinishToolCalls, Usage: usage}},
		"a window that is full":  {[]string{begin, text(0, "Hel"), because("model_context_window_exceeded"), used}, model.Reply{Parts: []agent.Part{said("Hel")}, Finish: model.FinishLength, Usage: usage}},
		"a guardrail":            {[]string{begin, text(0, "Sorry."), because("guardrail_intervened"), used}, model.Reply{Parts: []agent.Part{said("Sorry.")}, Finish: model.FinishContentFilter, Usage: usage}},
		"two kinds in one block": {[]string{begin, thinking(0, "Hm."), text(0, "So."), because("end_turn"), used}, model.Reply{Parts: []agent.Part{thought("Hm.", ""), said("So.")}, Finish: model.FinishStop, Usage: usage}},
		"what is not known":      {[]string{begin, frame("newEvent", `{"x":1}`), delta(0, `{"citation":{"title":"t"}}`), text(1, "So."), because("end_turn"), used}, model.Reply{Parts: []agent.Part{said("So.")}, Finish: model.FinishStop, Usage: usage}},
		"the cache": {[]string{begin, text(0, "So."), because("end_turn"), frame("metadata", `{"usage":{"inputTokens":5,"outputTokens":2,"totalTokens":1007,"cacheReadInputTokens":900,"cacheWriteInputTokens":100}}`)},
			model.Reply{Parts: []agent.Part{said("So.")}, Finish: model.FinishStop, Usage: agent.Usage{Input: 1005, Output: 2, CacheRead: 900, CacheWrite: 100}}},
	} {
		for _, n := range []int{0, 1, 7} {
			m, _ := serve(t, standin.Drip(fmt.Sprint(join(c.events)), n))
			reply, heard := standin.Reply(t, m, ask("Hello"))
			standin.Same(t, name, reply, &c.want, heard)
		}
	}
}

func join(events []string) (all string) {
	for _, e := range events {
		all += e
	}
	return all
}

// Bedrock refuses more than five documents, two with one name, and one without a text.
func TestDocuments(t *testing.T) {
	bytes := map[string][]byte{}
	var parts []agent.Part
	for range 3 {
		parts = append(parts, standin.Shown(bytes, "Bericht für 2026.pdf", "application/pdf", []byte("%PDF-1.4")), standin.Shown(bytes, "", "application/pdf", []byte("%PDF-1.5")))
	}
	m, s := serve(t, streams(whole...))
	standin.Reply(t, m, &model.Request{Model: sonnet, Files: bytes, Messages: []agent.Message{
		{Role: agent.RoleUser, Parts: parts[:1]}, assistant("bedrock/x", said("Hm.")), {Role: agent.RoleUser, Parts: parts[1:]},
	}})
	var in struct {
		Messages []struct {
			Content []struct {
				Text     string
				Document struct{ Name string }
			}
		}
	}
	require.NoError(t, json.Unmarshal(s.Bodies[0], &in))
	var said []string
	for _, m := range in.Messages {
		for _, b := range m.Content {
			said = append(said, b.Text+b.Document.Name)
		}
	}
	require.Equal(t, []string{
		"[Bericht für 2026.pdf#e16fa5d9 (application/pdf, 8 bytes): it is left out, since newer files need the room]", "", "Hm.",
		"document-2", "Bericht-f-r-2026-3", "document-4", "Bericht-f-r-2026-5", "document-6", "See the document.", "",
	}, said)
}
