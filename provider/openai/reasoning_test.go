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

// told is what of a request is about reasoning and the cache.
type told struct {
	Effort    string `json:"reasoning_effort"`
	Reasoning struct{ Effort string }
	Key       string `json:"prompt_cache_key"`
}

func tell(t *testing.T, o openai.Options, own bool, req *model.Request) (told, []byte) {
	t.Helper()
	answer := wholeResponse
	if o.API == openai.ChatCompletions {
		answer = wholeChat
	}
	s := standin.Listen(t, standin.Drip(answer, 0))
	o.APIKey, o.BaseURL = key, s.URL+"/v1"
	if own {
		o.BaseURL, o.HTTPClient = "", detour(s.URL)
	}
	standin.Reply(t, openai.New(&o), req)
	var in told
	require.NoError(t, json.Unmarshal(s.Bodies[0], &in))
	return in, s.Bodies[0]
}

// Levels are sent in the words of the model that is asked (HA-143).
func TestReasoning(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "")
	for _, c := range []struct {
		model string
		level agent.Reasoning
		own   bool
		want  string
	}{
		{"gpt-6-sol", "", true, ""},
		{"gpt-6-sol", "auto", true, "medium"},
		{"gpt-6-sol", "off", true, "none"},
		{"gpt-6-sol", "minimal", true, "low"},
		{"gpt-6-sol", "xhigh", true, "xhigh"},
		{"gpt-6-sol", "max", true, "max"},
		{"gpt-5.2", "max", true, "xhigh"},
		{"gpt-6.1-sol", "off", true, "low"},
		{"gpt-5.1-2025-11-13", "xhigh", true, "high"},
		{"gpt-5", "off", true, "minimal"},
		{"o3", "minimal", true, "low"},
		{"gpt-4o", "high", true, ""},
		{"gpt-of-tomorrow", "off", true, "low"},
		{"qwen3", "off", false, "none"},
		{"qwen3", "minimal", false, "low"},
		{"qwen3", "auto", false, ""},
		{"qwen3", "max", false, "high"},
	} {
		req := ask("Hello")
		req.Model, req.Reasoning = c.model, c.level
		in, _ := tell(t, openai.Options{API: openai.Responses}, c.own, req)
		require.Equal(t, c.want, in.Reasoning.Effort, "%s of %s in Responses", c.level, c.model)
		in, _ = tell(t, openai.Options{API: openai.ChatCompletions}, c.own, req)
		require.Equal(t, c.want, in.Effort, "%s of %s in Chat Completions", c.level, c.model)
	}
}

// The requests of a session go to one cache, and each begins with the one before it.
func TestNextTurnReadsTheCache(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "")
	for api, list := range map[openai.API]string{openai.Responses: "input", openai.ChatCompletions: "messages"} {
		req := full
		req.Call.Session = "ana@acme.com"
		req.Messages = conversation[:4]
		first, earlier := tell(t, openai.Options{API: api}, true, &req)
		req.Messages = conversation[:6]
		second, later := tell(t, openai.Options{API: api}, true, &req)
		standin.Grows(t, list, earlier, later)
		require.Equal(t, req.Call.CacheKey(), first.Key)
		require.Equal(t, first.Key, second.Key)

		other, _ := tell(t, openai.Options{API: api}, false, &req)
		require.Empty(t, other.Key, "servers of others may refuse a field that they do not know")
	}
}

// OpenAI's own models are asked for summaries of their thoughts, without which a long
// thought is silence.
func TestReasoningSummaries(t *testing.T) {
	for _, c := range []struct {
		model string
		level agent.Reasoning
		own   bool
		want  string
	}{
		{"gpt-6-sol", "", true, "auto"},
		{"gpt-6-sol", agent.ReasoningHigh, true, "auto"},
		{"gpt-6-sol", agent.ReasoningOff, true, ""},
		{"gpt-4o", "", true, ""},
		{"qwen3", agent.ReasoningHigh, false, ""},
	} {
		req := ask("Hello")
		req.Model, req.Reasoning = c.model, c.level
		_, body := tell(t, openai.Options{API: openai.Responses}, c.own, req)
		var in struct{ Reasoning struct{ Summary string } }
		require.NoError(t, json.Unmarshal(body, &in))
		require.Equal(t, c.want, in.Reasoning.Summary, "%s, %s", c.model, c.level)
	}
}
