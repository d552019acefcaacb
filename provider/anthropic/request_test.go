package anthropic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
)

var update = flag.Bool("update", false, "write testdata")

var call, result, assistant, thought, said = standin.Called, standin.Result, standin.Assistant, standin.Thought, standin.Said

const sonnet = "anthropic/claude-sonnet-5-5"

var (
	half    = 0.5
	weather = agent.ToolSpec{Name: "weather", Description: "The weather of a city.",
		Input: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","description":"<name> & country"}},"required":["city"]}`)}
	now = agent.ToolSpec{Name: "now"}
)

// conversation has turns of every kind, over two runs whose calls count from one.
var conversation = []agent.Message{
	agent.TextMessage(agent.RoleUser, "How is Rome?"),
	assistant(sonnet, thought("I should look.", "b2xk"), said("Let me look."), call("t1.1", "weather", `{"city":"Rome"}`), call("t1.2", "now", "")),
	{Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "weather", agent.CallOK, "21 °C"), result("t1.2", "now", agent.CallFailed, "no clock")}},
	assistant(sonnet, said("Mild."), said("")),
	{Role: agent.RoleUser, Parts: []agent.Part{said("And Oslo?"), said("  "), said("In winter.")}},
	assistant(sonnet, thought("Look again.", "bmV3"), agent.Part{Type: agent.PartThinking, Redacted: "cmVk"}, thought("never signed", ""),
		call("t1.1", "weather", `{"city":`), thought("after a call", "bGF0ZQ=="), call("t1.2", "weather", `{"city":"Oslo"}`)),
	{Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "weather", agent.CallRejected, "the arguments are not JSON")}},
	{Role: agent.RoleTool, Parts: []agent.Part{result("t1.2", "weather", agent.CallOK, "")}},
}

// shown has an image and a PDF, as the user shows them; within and after, as a tool does.
var (
	shown, files             = standin.Files()
	within, after, plotFiles = standin.ResultFiles()
)

var requests = []struct {
	name string
	req  model.Request
}{
	{"conversation", model.Request{
		Model: "claude-sonnet-5-5", Instructions: "Be brief.", Messages: conversation, Tools: []agent.ToolSpec{now, weather},
		MaxOutputTokens: 1000, Temperature: &half,
	}},
	{"recital", model.Request{ // the cache's marks and the thinking are those of the conversation before it
		Model: "claude-sonnet-5-5", Tools: []agent.ToolSpec{now},
		Messages: append(conversation[:3:3], standin.Recital()...),
	}},
	{"steered", model.Request{ // the user speaks while tools run: the results come first, and older thinking is left out
		Model: "claude-sonnet-5-5", Tools: []agent.ToolSpec{now},
		Messages: append([]agent.Message{
			conversation[0], conversation[1], agent.TextMessage(agent.RoleUser, "In Celsius, please.")}, conversation[2]),
	}},
	{"other_provider", model.Request{
		Model: "claude-of-tomorrow", Messages: []agent.Message{
			agent.TextMessage(agent.RoleUser, "Go."), assistant("openai/gpt-6-sol", thought("theirs", "eHg="), call("t1.1", "now", "")),
			{Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "now", agent.CallUnknown, "nobody knows"), result("t9.9", "lost", agent.CallOK, "no call")}},
		},
	}},
	{"output", model.Request{
		Model: "claude-haiku-4-5-20251001", Messages: conversation[:1],
		Output: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"city":{"type":"string"},"tags":{"type":["null","array"],"items":{"type":"string"}}},"required":["city"],"additionalProperties":false}`),
	}},
	{"files", model.Request{Model: "claude-sonnet-5-5", Messages: shown, Files: files}},
	{"result_files", model.Request{Model: "claude-sonnet-5-5", Messages: within, Files: plotFiles}},
	{"files_after_results", model.Request{Model: "claude-sonnet-5-5", Messages: after, Files: plotFiles}},
}

func TestRequest(t *testing.T) {
	for _, c := range requests {
		t.Run(c.name, func(t *testing.T) {
			m, s := serve(t, standin.Answer(200, "text/event-stream", whole))
			standin.Reply(t, m, &c.req)
			standin.Golden(t, *update, c.name+".json", s.Bodies[0])
			if h := s.Heads[0]; h.Get("x-api-key") != key || h.Get("anthropic-version") == "" {
				t.Errorf("sent the headers %v", h)
			}
		})
	}
}

// What was sent once is sent again, byte for byte and except for the marks of the
// cache: else the cache would not be hit, and thinking be refused.
func TestRequestsOnlyGrow(t *testing.T) {
	m, s := serve(t, standin.Answer(200, "text/event-stream", whole))
	var sent [][]json.RawMessage
	for _, n := range []int{5, 8} {
		standin.Reply(t, m, &model.Request{Model: "claude-sonnet-5-5", Messages: conversation[:n]})
		var body struct{ Messages []json.RawMessage }
		plain := strings.ReplaceAll(string(s.Bodies[len(s.Bodies)-1]), `,"cache_control":{"type":"ephemeral"}`, "")
		if err := json.Unmarshal([]byte(strings.ReplaceAll(plain, `"cache_control":{"type":"ephemeral"},`, "")), &body); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, body.Messages)
	}
	for i, msg := range sent[0] {
		if !bytes.Equal(msg, sent[1][i]) {
			t.Errorf("message %d was %s and is now %s", i, msg, sent[1][i])
		}
	}
}

// Of a schema only what the provider takes is sent in its own form, and nothing where
// little would remain.
func TestOutputThatDoesNotFit(t *testing.T) {
	closed := func(properties string) string {
		return `{"type":"object","properties":` + properties + `,"additionalProperties":false}`
	}
	for name, c := range map[string]struct{ schema, sent string }{
		"none":             {``, ``},
		"no object":        {`{"type":"array","items":{"type":"string"}}`, ``},
		"no schema":        {`true`, ``},
		"anything":         {closed(`{"a":{}}`), ``},
		"open":             {`{"type":"object","properties":{"a":{"type":"string"}}}`, closed(`{"a":{"type":"string"}}`)},
		"open on purpose":  {`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":true}`, ``},
		"open inside":      {closed(`{"a":{"type":"object"}}`), ``},
		"a map":            {`{"type":"object","additionalProperties":{"type":"string"}}`, ``},
		"a bound":          {closed(`{"a":{"type":"integer","minimum":1}}`), closed(`{"a":{"type":"integer"}}`)},
		"a reference":      {`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`, closed(`{"a":{"type":"integer"}}`)},
		"recursion":        {closed(`{"a":{"$ref":"#"}}`), ``},
		"unknown format":   {closed(`{"a":{"type":"string","format":"color"}}`), closed(`{"a":{"type":"string"}}`)},
		"two at least":     {closed(`{"a":{"type":"array","minItems":2}}`), closed(`{"a":{"type":"array"}}`)},
		"enum of objects":  {closed(`{"a":{"enum":[{}]}}`), ``},
		"bad alternative":  {closed(`{"a":{"anyOf":[{"type":"string"},{"type":"object"}]}}`), ``},
		"too many options": {closed(`{` + manyOptions() + `}`), ``},
	} {
		m, s := serve(t, standin.Answer(200, "text/event-stream", whole))
		standin.Reply(t, m, &model.Request{Model: "claude-sonnet-5-5", Messages: conversation[:1], Output: json.RawMessage(c.schema)})
		var in struct {
			OutputConfig struct {
				Format struct{ Schema json.RawMessage }
			} `json:"output_config"`
		}
		if err := json.Unmarshal(s.Bodies[0], &in); err != nil || string(in.OutputConfig.Format.Schema) != c.sent {
			t.Errorf("%s: sent %s", name, s.Bodies[0])
		}
	}
}

func manyOptions() string {
	var options []string
	for c := 'a'; c <= 'z'; c++ {
		options = append(options, `"`+string(c)+`":{"type":"string"}`)
	}
	return strings.Join(options, ",")
}

// What can't be asked is told, and not asked.
func TestWrongRequests(t *testing.T) {
	for name, req := range map[string]model.Request{
		"no message": {Model: "x"},
		"no text":    {Model: "x", Messages: []agent.Message{agent.TextMessage(agent.RoleUser, " \n")}},
		"no schema":  {Model: "x", Messages: conversation[:1], Tools: []agent.ToolSpec{{Name: "f", Input: json.RawMessage(`{`)}}},
		"no object":  {Model: "x", Messages: conversation[:1], Tools: []agent.ToolSpec{{Name: "f", Input: json.RawMessage(`null`)}}},
	} {
		m, s := serve(t, standin.Answer(200, "text/event-stream", whole))
		_, err := m.Generate(t.Context(), &req, silent)
		var fault *agent.Error
		if !errors.As(err, &fault) || fault.Provider.Kind != agent.FaultBadRequest || s.Requests() != 0 {
			t.Errorf("%s: got %v after %d requests", name, err, s.Requests())
		}
	}
}
