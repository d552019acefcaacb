package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
)

var update = flag.Bool("update", false, "write testdata")

var call, result, assistant, thought, said = standin.Called, standin.Result, standin.Assistant, standin.Thought, standin.Said

// under is thinking with the id that the provider gave it.
func under(id string, p agent.Part) agent.Part {
	p.ProviderID = id
	return p
}

const sol = "openai/gpt-6-sol"

var (
	half    = 0.5
	weather = agent.ToolSpec{Name: "weather", Description: "The weather of a city.",
		Input: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"at":{"type":"string"}},"required":["city"]}`)}
	now  = agent.ToolSpec{Name: "now"}
	city = json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"name":{"type":"string"},"in":{"type":["string","null"]}},"required":["name","in"],"additionalProperties":false}`)
)

// conversation has turns of every kind, over two runs whose calls count from one.
var conversation = []agent.Message{
	agent.TextMessage(agent.RoleUser, "How is Rome?"),
	assistant(sol, under("rs_1", thought("I should look.", "b2xk")), said("Let me look."), call("t1.1", "weather", `{"city":"Rome"}`), call("t1.2", "now", "")),
	agent.TextMessage(agent.RoleUser, "In Celsius, please."), // said while the tools ran
	{Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "weather", agent.CallOK, "21 °C"), result("t1.2", "now", agent.CallFailed, "no clock")}},
	assistant(sol, said("Mild."), said(" Very."), thought("nothing follows", "eA==")),
	{Role: agent.RoleUser, Parts: []agent.Part{said("And Oslo?"), said("  "), said("In winter.")}},
	agent.TextMessage(agent.RoleUser, "And in spring."),
	assistant("openai/gpt-6-luna", thought("of another model", "bmV3"), call("t1.1", "weather", `{"city":`), call("t1.2", "weather", `{"city":"Oslo"}`)),
	{Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "weather", agent.CallRejected, "the arguments are not JSON")}},
	{Role: agent.RoleTool, Parts: []agent.Part{result("t1.2", "weather", agent.CallOK, ""), result("t9.9", "lost", agent.CallOK, "no call")}},
	assistant(sol, thought("only", ""), said(" ")),
}

var full = model.Request{
	Model: "gpt-6-sol", Instructions: "Be brief.", Messages: conversation, Tools: []agent.ToolSpec{now, weather},
	MaxOutputTokens: 1000, Temperature: &half, Output: city,
}

// shown has an image and a PDF, as the user shows them; within and after, as a tool does.
var (
	shown, files             = standin.Files()
	within, after, plotFiles = standin.ResultFiles()
)

var requests = []struct {
	name    string
	options openai.Options
	own     bool
	req     model.Request
}{
	{"chat_compatible", openai.Options{}, false, full},
	{"chat_openai", openai.Options{API: openai.ChatCompletions}, true, full},
	{"chat_thinking", openai.Options{KeepThinking: true}, false, model.Request{Model: "deepseek", Messages: conversation[:4]}},
	{"chat_output", openai.Options{}, false, model.Request{Model: "llama", Messages: conversation[:1],
		Output: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","minLength":1}}}`)}},
	{"responses", openai.Options{}, true, full},
	{"chat_files", openai.Options{}, false, model.Request{Model: "llama", Messages: shown, Files: files}},
	{"responses_files", openai.Options{}, true, model.Request{Model: "gpt-6-sol", Messages: shown, Files: files}},
	{"responses_result_files", openai.Options{}, true, model.Request{Model: "gpt-6-sol", Messages: within, Files: plotFiles}},
	{"chat_files_after_results", openai.Options{}, false, model.Request{Model: "llama", Messages: after, Files: plotFiles}},
}

func TestRequest(t *testing.T) {
	for _, c := range requests {
		t.Run(c.name, func(t *testing.T) {
			s := standin.Listen(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/responses") {
					standin.Drip(wholeResponse, 0)(w, r)
					return
				}
				standin.Drip(wholeChat, 0)(w, r)
			})
			o := c.options
			o.APIKey, o.BaseURL = key, s.URL+"/v1"
			if c.own {
				o.BaseURL, o.HTTPClient = "", detour(s.URL)
			}
			standin.Reply(t, openai.New(&o), &c.req)
			standin.Golden(t, *update, c.name+".json", s.Bodies[0])
			if got := s.Heads[0].Get("authorization"); got != "Bearer "+key {
				t.Errorf("sent the authorization %q", got)
			}
		})
	}
}

func TestStrict(t *testing.T) {
	const objects = `{"type":"object","properties":{"a":%s},"required":["a"],"additionalProperties":false}`
	for schema, want := range map[string]string{
		`{"type":"string"}`: `"strict":true`,
		`{"type":"array","items":{"type":"integer","minimum":1},"minItems":2}`: `"strict":true`,
		`{"anyOf":[{"type":"string","format":"date"},{"type":"null"}]}`:        `"strict":true`,
		`{"enum":["x","y"]}`:                 `"strict":true`,
		`{"$ref":"#"}`:                       `"strict":true`,
		`{"type":"string","minLength":1}`:    `"strict":false`,
		`{"type":"string","format":"color"}`: `"strict":false`,
		`{"type":"object"}`:                  `"strict":false`,
		`{"type":["object","null"]}`:         `"strict":false`,
		`{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":false}`: `"strict":false`,
		`{"type":"object","additionalProperties":{"type":"string"}}`:                          `"strict":false`,
		`{"oneOf":[{"type":"string"}]}`:                                                       `"strict":false`,
		`{"anyOf":[{}]}`:                                                                      `"strict":false`,
		`{"type":"array","items":true}`:                                                       `"strict":false`,
	} {
		m, s := serve(t, standin.Drip(wholeChat, 0))
		req := ask("Hello")
		req.Output = json.RawMessage(strings.Replace(objects, "%s", schema, 1))
		standin.Reply(t, m, req)
		if !bytes.Contains(s.Bodies[0], []byte(want)) {
			t.Errorf("%s: sent %s, want %s", schema, s.Bodies[0], want)
		}
	}
	for _, schema := range []string{``, `true`, `{"type":"array"}`, `{`} {
		m, s := serve(t, standin.Drip(wholeChat, 0))
		req := ask("Hello")
		req.Output = json.RawMessage(schema)
		standin.Reply(t, m, req)
		if bytes.Contains(s.Bodies[0], []byte("response_format")) {
			t.Errorf("%s: sent %s", schema, s.Bodies[0])
		}
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
		for _, api := range []openai.API{openai.ChatCompletions, openai.Responses} {
			s := standin.Listen(t, standin.Drip(wholeChat, 0))
			m := openai.New(&openai.Options{BaseURL: s.URL, API: api})
			_, err := m.Generate(t.Context(), &req, silent)
			var fault *agent.Error
			if !errors.As(err, &fault) || fault.Provider.Kind != agent.FaultBadRequest || s.Requests() != 0 {
				t.Errorf("%s in %s: got %v after %d requests", name, api, err, s.Requests())
			}
		}
	}
}
