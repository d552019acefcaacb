package gemini_test

import (
	"testing"

	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/gemini"
)

// Headers and fields of the body are added, and none that the adapter writes.
func TestExtra(t *testing.T) {
	body := map[string]any{"generationConfig": map[string]any{"topK": 40, "seed": 7}, "toolConfig": map[string]any{"includeServerSideToolInvocations": false}}
	for _, name := range []string{"gemini-3.8-flash", "gemini-2.5-flash"} {
		standin.Adds(t, name, body, func(base string, x model.Extra) model.Model {
			return gemini.New(&gemini.Options{APIKey: key, BaseURL: base, ServiceTier: "flex", Extra: x})
		})
	}
}
