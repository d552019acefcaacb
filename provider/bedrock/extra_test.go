package bedrock_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/bedrock"
)

// Headers and fields of the body are added before the request is signed, and none that the
// adapter writes.
func TestExtra(t *testing.T) {
	body := map[string]any{
		"inferenceConfig": map[string]any{"topP": 0.9}, "requestMetadata": map[string]any{"team": "research"},
		"additionalModelRequestFields": map[string]any{"top_k": 40},
	}
	for _, name := range []string{sonnet, "eu.anthropic.claude-haiku-4-5-20251001-v1:0", "amazon.nova-2-lite-v1:0", "openai.gpt-oss-120b-1:0", "meta.llama4-scout-17b-instruct-v1:0"} {
		standin.Adds(t, name, body, func(base string, x model.Extra) model.Model {
			o := options(base, token, nil)
			o.ServiceTier, o.Extra = "flex", x
			return bedrock.New(o)
		})
	}
}

func TestExtraIsSigned(t *testing.T) {
	s := standin.Listen(t, streams())
	o := options(s.URL, token, nil)
	o.Extra = model.Extra{Headers: map[string]string{"X-Team": "research"}, Body: map[string]any{"requestMetadata": map[string]any{"team": "research"}}}
	_, err := bedrock.New(o).Generate(t.Context(), ask("Hello"), silent)
	require.Error(t, err) // there are no events
	signed := s.Heads[0].Get("Authorization")
	require.True(t, strings.Contains(signed, "x-team"), signed)
	require.Contains(t, string(s.Bodies[0]), `"requestMetadata":{"team":"research"}`)
}
