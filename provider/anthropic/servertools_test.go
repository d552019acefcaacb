package anthropic_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
)

// serving starts a stand-in, and Models that ask it, with server tools and without.
func serving(t *testing.T, events ...string) (with, without *anthropic.Model, sent func(m model.Model, messages ...agent.Message) string) {
	t.Helper()
	s := standin.Listen(t, standin.Answer(200, "text/event-stream", stream(events...)))
	o := anthropic.Options{APIKey: key, BaseURL: s.URL, ServerTools: []model.ServerTool{model.WebSearch, model.CodeExecution}}
	with, o.ServerTools = anthropic.New(&o), nil
	return with, anthropic.New(&o), func(m model.Model, messages ...agent.Message) string {
		t.Helper()
		standin.Reply(t, m, &model.Request{Model: "claude-sonnet-5-5", Messages: messages})
		var body struct{ Messages json.RawMessage }
		require.NoError(t, json.Unmarshal(s.Bodies[len(s.Bodies)-1], &body))
		return string(body.Messages)
	}
}

var (
	asks   = agent.TextMessage(agent.RoleUser, "How is Rome?")
	goOn   = agent.Message{Role: agent.RoleUser, Note: agent.NotePauseTurn, Parts: []agent.Part{said("Go on.")}}
	search = agent.Part{Type: agent.PartServerTool, Text: "web_search", Raw: json.RawMessage(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"weather"}}`)}
	finds  = agent.Part{Type: agent.PartServerTool, Text: "web_search_tool_result", Raw: json.RawMessage(found)}
	sunny  = agent.Part{Type: agent.PartText, Text: "Sunny.", Raw: json.RawMessage(`[{"type":"web_search_result_location","url":"https://a.example","title":"A","cited_text":"Sun.","encrypted_index":"aWR4"}]`)}
)

// What the provider's own tools did is given back to it as it was written, with what a text
// cites of it; not if the model has no such tools now, or another provider wrote it.
func TestServerToolsAreKept(t *testing.T) {
	with, without, sent := serving(t, begin, open(0, textBlock), text(0, "x"), stop(0), because("end_turn"), end)
	wrote := assistant(sonnet, thought("Look.", "c2ln"), search, finds, sunny)
	steps := string(search.Raw) + "," + found + `,{"text":"Sunny.","citations":` + string(sunny.Raw) + `,"type":"text"}`
	require.Contains(t, sent(with, asks, wrote, agent.TextMessage(agent.RoleUser, "Sure?")), steps)
	require.Contains(t, sent(with, asks, wrote), `{"signature":"c2ln","thinking":"Look.","type":"thinking"},`+steps)
	theirs := wrote
	theirs.Model = "openai/gpt-6-sol"
	for name, body := range map[string]string{"no such tools": sent(without, asks, wrote), "another provider": sent(with, asks, theirs)} {
		require.NotContains(t, body, "srvtoolu_1", name)
		require.NotContains(t, body, "citations", name)
		require.NotContains(t, body, "c2ln", name)
		require.Contains(t, body, "Sunny.", name)
	}
	long := search
	long.Raw = nil // it was too long to keep, so that its result has no call
	require.NotContains(t, sent(with, asks, assistant(sonnet, long, finds, sunny)), "srvtoolu_1")
}

// A reply that the provider has paused is given back as it is, and nobody says a word: so
// the model goes on with it. To others it is told in words.
func TestPausedRepliesGoOn(t *testing.T) {
	with, without, sent := serving(t, begin, open(0, textBlock), text(0, "x"), stop(0), because("end_turn"), end)
	paused := assistant(sonnet, said("Let me look."), search)
	body := sent(with, asks, paused, goOn)
	require.Contains(t, body, "srvtoolu_1")
	require.NotContains(t, body, "Go on.")
	body = sent(with, asks, paused, goOn, assistant(sonnet, finds, sunny), agent.TextMessage(agent.RoleUser, "Sure?"))
	require.Contains(t, body, string(search.Raw)+","+found)
	require.NotContains(t, body, "Go on.")
	body = sent(without, asks, paused, goOn)
	require.NotContains(t, body, "srvtoolu_1")
	require.Contains(t, body, "Go on.")
	body = sent(with, asks, paused, goOn, agent.TextMessage(agent.RoleUser, "Stop looking."))
	require.NotContains(t, body, "srvtoolu_1", "a call without its result is refused unless the model goes on with it")
}

// A server that does not stream tells the same.
func TestAWholeReplyWithServerTools(t *testing.T) {
	m, _ := serve(t, standin.Answer(200, "application/json", `{"type":"message","role":"assistant","stop_reason":"pause_turn","content":[`+string(search.Raw)+","+found+
		`],"usage":{"input_tokens":10,"output_tokens":25,"server_tool_use":{"web_search_requests":1}}}`))
	reply, _ := standin.Reply(t, m, ask("How is Rome?"))
	require.Equal(t, model.FinishPauseTurn, reply.Finish)
	require.Equal(t, int64(1), reply.Usage.Searches)
	require.Len(t, reply.Parts, 2)
	require.JSONEq(t, string(search.Raw), string(reply.Parts[0].Raw))
	require.JSONEq(t, found, string(reply.Parts[1].Raw))
	require.Equal(t, `web_search {"query":"weather"}`, reply.Parts[0].Text)
}

// The tools are asked for in each request, and cost what they cost.
func TestServerTools(t *testing.T) {
	s := standin.Listen(t, standin.Answer(200, "text/event-stream", whole))
	m := anthropic.New(&anthropic.Options{APIKey: key, BaseURL: s.URL, ServerTools: []model.ServerTool{model.WebSearch, model.CodeExecution}})
	standin.Reply(t, m, &model.Request{Model: "claude-sonnet-5-5", Messages: []agent.Message{asks}, Tools: []agent.ToolSpec{now}})
	require.Contains(t, string(s.Bodies[0]), `{"name":"web_search","type":"web_search_20250305"},{"cache_control":{"type":"ephemeral"},"name":"code_execution","type":"code_execution_20250825"}`)
	require.Equal(t, 10*agent.Dollar, m.Info("claude-opus-5").Price.Search)
	require.Zero(t, m.Info("claude-of-tomorrow").Price)
	o := anthropic.Options{ServerTools: []model.ServerTool{"telepathy"}}
	require.ErrorIs(t, o.Check(), agent.CodeInvalidInput)
}

// A request has none of the provider's tools that it is denied, and the model keeps them for others.
func TestServerToolsThatARequestIsDenied(t *testing.T) {
	s := standin.Listen(t, standin.Answer(200, "text/event-stream", stream(begin, open(0, textBlock), text(0, "x"), stop(0), because("end_turn"), end)))
	m := anthropic.New(&anthropic.Options{APIKey: key, BaseURL: s.URL, ServerTools: []model.ServerTool{model.WebSearch, model.CodeExecution}})
	sent := func(denied ...model.ServerTool) string {
		standin.Reply(t, m, &model.Request{Model: "claude-sonnet-5-5", Messages: []agent.Message{asks}, DeniedServerTools: denied})
		return string(s.Bodies[len(s.Bodies)-1])
	}
	require.NotContains(t, sent(model.ServerTools()...), `"tools"`)
	one := sent(model.WebSearch)
	require.NotContains(t, one, "web_search")
	require.Contains(t, one, "code_execution")
	require.Contains(t, sent(), "web_search")
}
