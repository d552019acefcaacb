package openai_test

import (
	"testing"

	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
)

// Headers and fields of the body are added, and none that the adapter writes.
func TestExtra(t *testing.T) {
	for api, body := range map[openai.API]map[string]any{
		openai.ChatCompletions: {"top_p": 0.9, "seed": 7, "metadata": map[string]any{"team": "research"}},
		openai.Responses:       {"top_p": 0.9, "text": map[string]any{"verbosity": "low"}, "reasoning": map[string]any{"mode": "standard"}},
	} {
		for _, name := range []string{"gpt-5.5", "gpt-4.1"} {
			standin.Adds(t, name, body, func(base string, x model.Extra) model.Model {
				return openai.New(&openai.Options{APIKey: key, BaseURL: base + "/v1", API: api, Own: true, ServiceTier: "flex", Extra: x})
			})
		}
	}
}
