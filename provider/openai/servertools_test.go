package openai_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
)

// Steps of the server's own tools, as it writes them.
const (
	searched = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"rome weather","queries":["rome weather"]}}`
	opened   = `{"id":"ws_2","type":"web_search_call","status":"completed","action":{"type":"open_page","url":"https://a.example"}}`
	computed = `{"id":"ci_1","type":"code_interpreter_call","status":"completed","code":"print(1)","container_id":"cntr_1","outputs":[{"type":"logs","logs":"1\n"}]}`
	thinks   = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ZW5j"}`
	cites    = `{"type":"url_citation","start_index":0,"end_index":5,"url":"https://a.example","title":"A"}`
	sunny    = `{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Sunny.","annotations":[` + cites + `]}]}`
)

// What the server's own tools did, and what a text cites, is kept as it was written, and the
// same model is given the steps back; no other one, and none that has no such tools.
func TestServerToolsAreKept(t *testing.T) {
	s := standin.Listen(t, standin.Drip(events(created, done(0, thinks), done(1, searched), done(2, opened), done(3, computed), done(4, sunny), ended("completed", "")), 0))
	with := func(tools ...model.ServerTool) *openai.Model {
		return openai.New(&openai.Options{APIKey: key, BaseURL: s.URL + "/v1", API: openai.Responses, ServerTools: tools})
	}
	m := with(model.WebSearch, model.CodeExecution)
	reply, _ := standin.Reply(t, m, ask("How is Rome?"))
	require.Equal(t, model.FinishStop, reply.Finish)
	require.Equal(t, int64(1), reply.Usage.Searches, "a page that is opened is no search")
	require.Equal(t, []agent.Part{
		{Type: agent.PartThinking, Signature: "ZW5j", ProviderID: "rs_1"},
		{Type: agent.PartServerTool, Text: "web_search rome weather", Raw: json.RawMessage(searched)},
		{Type: agent.PartServerTool, Text: "web_search https://a.example", Raw: json.RawMessage(opened)},
		{Type: agent.PartServerTool, Text: "code_interpreter print(1)", Raw: json.RawMessage(computed)},
		{Type: agent.PartText, Text: "Sunny.", Citations: []agent.Citation{{End: 5, URL: "https://a.example", Title: "A"}}},
	}, reply.Parts)
	body := string(s.Bodies[0])
	require.Contains(t, body, `"tools":[{"type":"web_search"},{"container":{"type":"auto"},"type":"code_interpreter"}]`)
	require.Contains(t, body, `"include":["code_interpreter_call.outputs"]`)

	again := *ask("")
	again.Messages = []agent.Message{agent.TextMessage(agent.RoleUser, "How is Rome?"), {Role: agent.RoleAssistant, ProviderModel: reply.ProviderModel, Parts: reply.Parts}, agent.TextMessage(agent.RoleUser, "Sure?")}
	sent := func(m *openai.Model, req model.Request) string {
		t.Helper()
		standin.Reply(t, m, &req)
		var body struct{ Input json.RawMessage }
		require.NoError(t, json.Unmarshal(s.Bodies[len(s.Bodies)-1], &body))
		return string(body.Input)
	}
	back := sent(m, again)
	require.Contains(t, back, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ZW5j"},`+searched+","+opened+","+computed+",")
	other := again
	other.Model = "gpt-of-tomorrow"
	for name, body := range map[string]string{"another model": sent(m, other), "no such tools": sent(with(), again)} {
		require.NotContains(t, body, "ws_1", name)
		require.NotContains(t, body, "rs_1", name)
		require.Contains(t, body, "Sunny.", name)
	}
	cut := again
	cut.Messages[1].Parts[1].Raw = nil // it was too long to keep
	back = sent(m, cut)
	require.NotContains(t, back, "rs_1", "nothing follows the thought as it did")
	require.Contains(t, back, "ws_2")
}

// Only Responses have tools of the server's own.
func TestServerToolsThatCantBeMeant(t *testing.T) {
	for _, o := range []openai.Options{
		{ServerTools: []model.ServerTool{model.WebSearch}, API: openai.ChatCompletions},
		{ServerTools: []model.ServerTool{"telepathy"}},
		{ServerTools: []model.ServerTool{model.WebSearch, model.WebSearch}},
	} {
		var what *agent.Error
		require.ErrorAs(t, o.Check(), &what)
		require.Equal(t, "server_tools", what.Path)
	}
}

// A request has none of the server's tools that it is denied, and the model keeps them for others.
func TestServerToolsThatARequestIsDenied(t *testing.T) {
	s := standin.Listen(t, standin.Drip(events(created, done(0, sunny), ended("completed", "")), 0))
	m := openai.New(&openai.Options{APIKey: key, BaseURL: s.URL + "/v1", API: openai.Responses, ServerTools: model.ServerTools()})
	sent := func(denied ...model.ServerTool) string {
		req := ask("How is Rome?")
		req.DeniedServerTools = denied
		standin.Reply(t, m, req)
		return string(s.Bodies[len(s.Bodies)-1])
	}
	none := sent(model.ServerTools()...)
	require.NotContains(t, none, `"tools"`)
	require.NotContains(t, none, `"include":["code_interpreter`)
	one := sent(model.WebSearch)
	require.NotContains(t, one, "web_search")
	require.Contains(t, one, "code_interpreter")
	require.Contains(t, sent(), "web_search")
}
