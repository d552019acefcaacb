package openai_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
)

// The model is told the schema of its answer in its first request, whatever the
// form of the request can carry.
func TestOutputReachesTheModel(t *testing.T) {
	for _, c := range []struct {
		api    openai.API
		own    bool
		answer http.HandlerFunc
	}{
		{openai.ChatCompletions, false, standin.Drip(wholeChat, 0)},
		{openai.ChatCompletions, true, standin.Drip(wholeChat, 0)},
		{openai.Responses, false, standin.Drip(wholeResponse, 0)},
		{openai.Responses, true, standin.Drip(wholeResponse, 0)},
	} {
		make := func(base string, _ *http.Client) model.Model {
			o := &openai.Options{APIKey: key, BaseURL: base + "/v1", API: c.api}
			if c.own {
				o.BaseURL, o.HTTPClient = "", detour(base)
			}
			return openai.New(o)
		}
		standin.OutputReaches(t, make, c.answer, *ask("Hello"), []agent.ToolSpec{now, weather})
	}
}

// DeepSeek refuses a schema in Chat Completions: it is asked for an object, and told the
// schema in words.
func TestOutputOfDeepSeek(t *testing.T) {
	for _, c := range []struct {
		output string
		tools  []agent.ToolSpec
		asked  bool
	}{
		{standin.Outputs["object"], nil, true},
		{standin.Outputs["array"], nil, false},
		{standin.Outputs["object"], []agent.ToolSpec{now}, false},
		{"", nil, false},
	} {
		s := standin.Listen(t, standin.Drip(wholeChat, 0))
		req := ask("Hello")
		req.Output, req.Tools = json.RawMessage(c.output), c.tools
		standin.Reply(t, openai.New(&openai.Options{APIKey: key, BaseURL: "https://api.deepseek.com", HTTPClient: detour(s.URL)}), req)
		var sent struct {
			Format   json.RawMessage `json:"response_format"`
			Messages []struct{ Content string }
		}
		require.NoError(t, json.Unmarshal(s.Bodies[0], &sent))
		if c.asked {
			require.JSONEq(t, `{"type":"json_object"}`, string(sent.Format))
		} else {
			require.Empty(t, sent.Format)
		}
		require.Contains(t, sent.Messages[0].Content, c.output)
	}
	s := standin.Listen(t, standin.Drip(wholeResponse, 0))
	req := ask("Hello")
	req.Output = json.RawMessage(standin.Outputs["object"])
	standin.Reply(t, openai.New(&openai.Options{APIKey: key, BaseURL: "https://api.deepseek.com", HTTPClient: detour(s.URL), API: openai.Responses}), req)
	require.Contains(t, string(s.Bodies[0]), `"type":"json_schema"`)
}
