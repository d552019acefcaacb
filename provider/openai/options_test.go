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

// opted is what of a request the options decide.
type opted struct {
	MaxTokens     int             `json:"max_tokens"`
	MaxCompletion int             `json:"max_completion_tokens"`
	StreamOptions json.RawMessage `json:"stream_options"`
	ToolChoice    string          `json:"tool_choice"`
	ServiceTier   string          `json:"service_tier"`
	Messages      []struct {
		Calls []struct{ ID string } `json:"tool_calls"`
		ID    string                `json:"tool_call_id"`
	}
	Input []struct {
		ID string `json:"call_id"`
	}
}

// asked makes one request with options, and reads it.
func asked(t *testing.T, o openai.Options, req *model.Request) (in opted) {
	t.Helper()
	whole := wholeChat
	if o.API == openai.Responses {
		whole = wholeResponse
	}
	s := standin.Listen(t, standin.Drip(whole, 0))
	o.APIKey, o.BaseURL = key, s.URL+"/v1"
	standin.Reply(t, openai.New(&o), req)
	require.NoError(t, json.Unmarshal(s.Bodies[0], &in))
	return in
}

// The field that bounds a reply goes by who made the model, unless an option names it.
func TestMaxTokensField(t *testing.T) {
	for _, c := range []struct {
		model, field string
		own          bool
		old          bool // max_tokens
	}{
		{"llama", "", false, true},
		{"gpt-4o", "", false, true},
		{"gpt-5.5", "", false, false},
		{"openai/gpt-5-mini-2025-08-07", "", false, false},
		{"gpt-4o", "", true, false},
		{"mistral-large", openai.MaxTokens, true, true},
		{"llama", openai.MaxCompletionTokens, false, false},
	} {
		req := ask("Hello")
		req.Model, req.MaxOutputTokens = c.model, 100
		in := asked(t, openai.Options{API: openai.ChatCompletions, Own: c.own, MaxTokensField: c.field}, req)
		require.Equal(t, c.old, in.MaxTokens == 100, c)
		require.Equal(t, !c.old, in.MaxCompletion == 100, c)
	}
}

func TestStreamOptions(t *testing.T) {
	require.JSONEq(t, `{"include_usage":true}`, string(asked(t, openai.Options{}, ask("Hello")).StreamOptions))
	require.Empty(t, asked(t, openai.Options{NoStreamOptions: true}, ask("Hello")).StreamOptions)
}

func TestToolChoice(t *testing.T) {
	for _, api := range []openai.API{openai.ChatCompletions, openai.Responses} {
		o := openai.Options{API: api, ToolChoice: model.ToolChoiceRequired}
		req := ask("Hello")
		require.Empty(t, asked(t, o, req).ToolChoice, "there are no tools")
		req.Tools = []agent.ToolSpec{now}
		require.Equal(t, "required", asked(t, o, req).ToolChoice)
		require.Empty(t, asked(t, openai.Options{API: api}, req).ToolChoice)
		req.NoCalls = true
		require.Equal(t, "none", asked(t, o, req).ToolChoice)
	}
}

// A tier of service is asked for, and has its own price, if it is known.
func TestServiceTier(t *testing.T) {
	for _, api := range []openai.API{openai.ChatCompletions, openai.Responses} {
		require.Empty(t, asked(t, openai.Options{API: api}, ask("Hello")).ServiceTier)
		require.Equal(t, "flex", asked(t, openai.Options{API: api, Own: true, ServiceTier: "flex"}, ask("Hello")).ServiceTier)
	}
	require.Equal(t, "on_demand", asked(t, openai.Options{ServiceTier: "on_demand"}, ask("Hello")).ServiceTier)
	usual := openai.New(&openai.Options{APIKey: key}).Info("gpt-5.5")
	for tier, percent := range map[string]agent.USD{"auto": 100, "default": 100, "flex": 50, "priority": 250, "fast": 250, "scale": 0} {
		m := openai.New(&openai.Options{APIKey: key, ServiceTier: tier})
		require.Equal(t, usual.Price.Input*percent/100, m.Info("gpt-5.5").Price.Input, tier)
		require.Equal(t, usual.Price.Output*percent/100, m.Info("gpt-5.5").Price.Output, tier)
		require.Equal(t, usual.Window, m.Info("gpt-5.5").Window)
	}
}

// Ids of calls go back as the server gave them if an option says so, and to Kimi's models:
// each once, and never one of another provider's.
func TestCallIDs(t *testing.T) {
	const given = "functions.now:0"
	made := func(maker string, ids ...string) []agent.Message {
		calls := agent.Message{Role: agent.RoleAssistant, ProviderModel: maker}
		results := agent.Message{Role: agent.RoleTool}
		for i, id := range ids {
			ours := string(rune('a' + i))
			calls.Parts = append(calls.Parts, agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: ours, ProviderID: id, Tool: "now", Arguments: json.RawMessage(`{}`)}})
			results.Parts = append(results.Parts, agent.Part{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: ours, Tool: "now", Text: "12:00", Status: agent.CallOK}})
		}
		return []agent.Message{calls, results}
	}
	for _, c := range []struct {
		what     string
		model    string
		keep     bool
		messages []agent.Message
		want     []string
	}{
		{"not asked for", "llama", false, made("openai/llama", given), []string{"call00001"}},
		{"asked for", "llama", true, made("openai/llama", given), []string{given}},
		{"of Kimi", "moonshotai/Kimi-K2-Instruct", false, made("openai/x", given, "functions.now:1"), []string{given, "functions.now:1"}},
		{"of another provider", "llama", true, made("gemini/x", given), []string{"call00001"}},
		{"one is missing", "llama", true, made("openai/llama", given, ""), []string{"call00001", "call00002"}},
		{"twice in a message", "llama", true, made("openai/llama", given, given), []string{"call00001", "call00002"}},
		{"like ours", "llama", true, made("openai/llama", "call00002"), []string{"call00001"}},
		{"twice", "llama", true, append(made("openai/llama", given), made("openai/llama", given)...), []string{given, "call00002"}},
	} {
		for _, api := range []openai.API{openai.ChatCompletions, openai.Responses} {
			req := ask("When is it?")
			req.Model, req.Messages, req.Tools = c.model, append(req.Messages, c.messages...), []agent.ToolSpec{now}
			in := asked(t, openai.Options{API: api, KeepCallIDs: c.keep}, req)
			var calls, results []string
			for _, m := range in.Messages {
				for _, call := range m.Calls {
					calls = append(calls, call.ID)
				}
				if m.ID != "" {
					results = append(results, m.ID)
				}
			}
			for _, item := range in.Input {
				if item.ID != "" {
					calls = append(calls, item.ID) // calls and results in turn
				}
			}
			if api == openai.Responses {
				require.ElementsMatch(t, append(c.want, c.want...), calls, c.what)
				continue
			}
			require.Equal(t, c.want, calls, c.what)
			require.Equal(t, c.want, results, c.what)
		}
	}
}

// Options that can't be meant are refused before anything is asked, with their field.
func TestOptionsAreChecked(t *testing.T) {
	for field, o := range map[string]openai.Options{
		"api":              {API: "soap"},
		"keep_thinking":    {API: openai.Responses, KeepThinking: true},
		"max_tokens_field": {MaxTokensField: "max_words"},
		"stream_options":   {API: openai.Responses, NoStreamOptions: true},
		"service_tier":     {Own: true, ServiceTier: "cheap"},
		"tool_choice":      {ToolChoice: "now"},
		"body.stream":      {Extra: model.Extra{Body: map[string]any{"stream": false}}},
	} {
		o.BaseURL = "http://127.0.0.1:1/v1"
		var what *agent.Error
		require.ErrorAs(t, o.Check(), &what, field)
		require.Equal(t, field, what.Path)
		_, err := openai.New(&o).Generate(t.Context(), ask("Hello"), silent)
		require.ErrorContains(t, err, what.Message)
		require.Equal(t, agent.CodeProviderError, agent.CodeOf(err))
	}
	for _, o := range []openai.Options{
		{API: openai.Responses, MaxTokensField: openai.MaxTokens}, {ServiceTier: "Not A Word"}, {API: openai.ChatCompletions, Own: true, ServiceTier: "ultrafast"},
	} {
		require.Equal(t, agent.CodeInvalidInput, agent.CodeOf(o.Check()))
	}
}
