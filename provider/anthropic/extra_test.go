package anthropic_test

import (
	"testing"

	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
)

// Headers and fields of the body are added, and none that the adapter writes.
func TestExtra(t *testing.T) {
	body := map[string]any{"metadata": map[string]any{"user_id": "u-1"}, "stop_sequences": []string{"END"}, "inference_geo": "us"}
	for _, name := range []string{"claude-opus-5", "claude-haiku-4-5", "claude-opus-4-6"} {
		standin.Adds(t, name, body, func(base string, x model.Extra) model.Model {
			return anthropic.New(&anthropic.Options{APIKey: key, BaseURL: base, ServiceTier: "standard_only", Extra: x})
		})
	}
}
