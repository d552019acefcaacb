package vertex_test

import (
	"testing"

	"golang.org/x/oauth2"

	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/vertex"
)

// Headers and fields of the body are added, and none that the adapter writes.
func TestExtra(t *testing.T) {
	bare(t)
	for name, body := range map[string]map[string]any{
		sonnet: {"metadata": map[string]any{"user_id": "u-1"}, "stop_sequences": []string{"END"}},
		flash:  {"generationConfig": map[string]any{"topK": 40, "seed": 7}},
	} {
		standin.Adds(t, name, body, func(base string, x model.Extra) model.Model {
			return vertex.New(&vertex.Options{BaseURL: base, Project: "my-project", Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token}), Extra: x})
		})
	}
}
