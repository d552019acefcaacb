package azure_test

import (
	"testing"

	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/azure"
)

// Headers and fields of the body are added, and none that the adapter writes.
func TestExtra(t *testing.T) {
	bare(t)
	for _, version := range []string{"", "2024-10-21"} {
		standin.Adds(t, "gpt-5.5", map[string]any{"top_p": 0.9, "metadata": map[string]any{"team": "research"}}, func(base string, x model.Extra) model.Model {
			return azure.New(&azure.Options{Endpoint: base, APIVersion: version, APIKey: "a-key-of-azure-0123", ServiceTier: "flex", Extra: x})
		})
	}
}
