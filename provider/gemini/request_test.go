package gemini_test

import (
	"encoding/json"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
)

var update = flag.Bool("update", false, "write testdata")

const flash = "gemini/gemini-3.8-flash"

var (
	half    = 0.7
	weather = agent.ToolSpec{Name: "weather", Description: "The weather of a city.",
		Input: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","description":"<name> & country"},"at":{"type":"string"}},"required":["city"]}`)}
	now  = agent.ToolSpec{Name: "now"}
	city = json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"name":{"type":"string"},"in":{"type":["string","null"]}},"required":["name","in"],"additionalProperties":false}`)
)

// conversation has turns of every kind, over two runs whose calls count from one.
var conversation = []agent.Message{
	agent.TextMessage(agent.RoleUser, "How is Rome?"),
	assistant(flash, thought("I should look.", ""), said("Let me look."), thought("", "b2xk"), call("t1.1", "weather", `{"city":"Rome","id":12345678901234567891}`), call("t1.2", "now", "")),
	agent.TextMessage(agent.RoleUser, "In Celsius, please."), // said while the tools ran
	{Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "weather", agent.CallOK, "21 °C"), result("t1.2", "now", agent.CallFailed, "no clock")}},
	assistant(flash, said("Mild."), thought("", "bGFzdA==")), // signed at the end, on no words
	{Role: agent.RoleUser, Parts: []agent.Part{said("And Oslo?"), said("  "), said("In winter.")}},
	assistant("gemini/gemini-2.5-pro", thought("of another model", "bmV3"), call("t1.1", "weather", `{"city":`), call("t1.2", "weather", `{"city":"Oslo"}`)),
	{Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "weather", agent.CallRejected, "the arguments are not JSON")}},
	{Role: agent.RoleTool, Parts: []agent.Part{result("t1.2", "weather", agent.CallOK, ""), result("t9.9", "lost", agent.CallOK, "no call")}},
	assistant("anthropic/claude-sonnet-5-5", thought("only", "eHg="), said(" ")),
}

var full = model.Request{
	Model: "gemini-3.8-flash", Instructions: "Be brief.", Messages: conversation, Tools: []agent.ToolSpec{now, weather},
	MaxOutputTokens: 1000, Temperature: &half, Output: city, Reasoning: agent.ReasoningHigh,
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
	{"conversation", full},
	{"older", model.Request{Model: "gemini-2.5-flash", Messages: conversation[:4], Tools: []agent.ToolSpec{now}, Output: city, Reasoning: agent.ReasoningOff}},
	{"output", model.Request{Model: "gemini-2.5-pro", Messages: conversation[:1], Output: city}},
	{"plain", model.Request{Model: "gemma-4-31b-it", Messages: conversation[:1], Reasoning: agent.ReasoningHigh}},
	{"files", model.Request{Model: "gemini-2.5-pro", Messages: shown, Files: files}},
	{"result_files", model.Request{Model: "gemini-3.8-flash", Messages: within, Files: plotFiles}},
	{"files_after_results", model.Request{Model: "gemini-2.5-pro", Messages: after, Files: plotFiles}},
}

func TestRequest(t *testing.T) {
	for _, c := range requests {
		t.Run(c.name, func(t *testing.T) {
			m, s := serve(t, standin.Drip(whole, 0))
			standin.Reply(t, m, &c.req)
			standin.Golden(t, *update, c.name+".json", s.Bodies[0])
			require.Equal(t, key, s.Heads[0].Get("x-goog-api-key"))
		})
	}
}

// Each request begins with the one before it, which is what the provider caches.
func TestNextTurnReadsTheCache(t *testing.T) {
	m, s := serve(t, standin.Drip(whole, 0))
	for _, n := range []int{2, 4, 6} {
		req := full
		req.Messages = conversation[:n]
		standin.Reply(t, m, &req)
	}
	standin.Grows(t, "contents", s.Bodies[0], s.Bodies[1])
	standin.Grows(t, "contents", s.Bodies[1], s.Bodies[2])
}

// Levels are sent in the words of the model that is asked (HA-143).
func TestReasoning(t *testing.T) {
	for _, c := range []struct {
		model string
		level agent.Reasoning
		want  string
	}{
		{"gemini-3.8-flash", "", `{"includeThoughts":true}`},
		{"gemini-3.8-flash", "auto", `{"includeThoughts":true}`},
		{"gemini-3.8-flash", "off", `{"includeThoughts":true,"thinkingLevel":"LOW"}`},
		{"gemini-3.8-flash", "xhigh", `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
		{"gemini-3.6-flash", "off", `{"includeThoughts":true,"thinkingLevel":"MINIMAL"}`},
		{"gemini-pro-latest", "medium", `{"includeThoughts":true,"thinkingLevel":"MEDIUM"}`},
		{"gemini-2.5-flash", "", `{"includeThoughts":true}`},
		{"gemini-2.5-flash", "auto", `{"includeThoughts":true,"thinkingBudget":-1}`},
		{"gemini-2.5-flash", "off", `{"thinkingBudget":0}`},
		{"gemini-2.5-flash", "xhigh", `{"includeThoughts":true,"thinkingBudget":24576}`},
		{"gemini-2.5-pro", "off", `{"includeThoughts":true,"thinkingBudget":128}`},
		{"gemini-2.5-pro", "minimal", `{"includeThoughts":true,"thinkingBudget":512}`},
		{"gemini-2.5-pro", "xhigh", `{"includeThoughts":true,"thinkingBudget":32768}`},
		{"gemini-2.5-pro", "max", `{"includeThoughts":true,"thinkingBudget":32768}`},
		{"gemini-2.5-flash", "max", `{"includeThoughts":true,"thinkingBudget":24576}`},
		{"gemini-3.8-flash", "max", `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
		{"gemini-2.0-flash", "high", ``},
		{"gemma-4-31b-it", "high", ``},
	} {
		m, s := serve(t, standin.Drip(whole, 0))
		req := ask("Hello")
		req.Model, req.Reasoning = c.model, c.level
		standin.Reply(t, m, req)
		var in struct {
			GenerationConfig struct{ ThinkingConfig json.RawMessage }
		}
		require.NoError(t, json.Unmarshal(s.Bodies[0], &in))
		if got := string(in.GenerationConfig.ThinkingConfig); c.want == "" {
			require.Empty(t, got, "%s of %s", c.level, c.model)
		} else {
			require.JSONEq(t, c.want, got, "%s of %s", c.level, c.model)
		}
	}
}

// Of a schema only what the provider takes is sent in its own form, and nothing of one
// that is of neither an object nor a list.
func TestOutputThatDoesNotFit(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string","format":"date"},{"type":"null"}]},"b":{"type":"array","items":{"type":"integer","minimum":1},"minItems":2}}}`: `{"type":"object","properties":{"a":{"anyOf":[{"type":"string","format":"date"},{"type":"null"}]},"b":{"type":"array","items":{"type":"integer","minimum":1},"minItems":2}}}`,
		`{"type":"object","additionalProperties":{"type":"string"}}`:                                                `{"type":"object","additionalProperties":{"type":"string"}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/n","description":"x"}},"$defs":{"n":{"type":"null"}}}`: `{"type":"object","properties":{"a":{"type":"null","description":"x"}}}`,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"x"},"b":{"const":"y"},"c":{"const":true}}}`: `{"type":"object","properties":{"a":{"type":"string"},"b":{"enum":["y"]},"c":{}}}`,
		`{"type":"object","properties":{"a":true}}`:                                                                 `{"type":"object","properties":{"a":{}}}`,
		`{"type":"object","properties":{"a":{"oneOf":[{"not":{}}]}}}`:                                               `{"type":"object","properties":{"a":{"oneOf":[{}]}}}`,
		`{"type":"array","items":{"type":"string"}}`:                                                                `{"type":"array","items":{"type":"string"}}`,
		`{"type":"string"}`: ``,
		`true`:              ``,
		``:                  ``,
	} {
		m, s := serve(t, standin.Drip(whole, 0))
		req := ask("Hello")
		req.Output = json.RawMessage(schema)
		standin.Reply(t, m, req)
		var in struct {
			GenerationConfig struct {
				ResponseMimeType   string
				ResponseJsonSchema json.RawMessage
			}
		}
		require.NoError(t, json.Unmarshal(s.Bodies[0], &in))
		require.Equal(t, want, string(in.GenerationConfig.ResponseJsonSchema), schema)
		require.Equal(t, want != "", in.GenerationConfig.ResponseMimeType == "application/json", schema)
	}
}

// What can't be asked is told, and not asked.
func TestWrongRequests(t *testing.T) {
	for name, req := range map[string]model.Request{
		"no message": {Model: "x"},
		"no text":    {Model: "x", Messages: []agent.Message{agent.TextMessage(agent.RoleUser, " \n")}},
		"no schema":  {Model: "x", Messages: conversation[:1], Tools: []agent.ToolSpec{{Name: "f", Input: json.RawMessage(`{`)}}},
		"no object":  {Model: "x", Messages: conversation[:1], Tools: []agent.ToolSpec{{Name: "f", Input: json.RawMessage(`null`)}}},
	} {
		m, s := serve(t, standin.Drip(whole, 0))
		_, err := m.Generate(t.Context(), &req, silent)
		var fault *agent.Error
		require.ErrorAs(t, err, &fault, name)
		require.Equal(t, agent.FaultBadRequest, fault.Provider.Kind, name)
		require.Zero(t, s.Requests(), name)
	}
}
