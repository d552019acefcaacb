package openai_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
)

// A model that agents know by another name is given its own thoughts back, under the
// provider's own ids.
func TestAlias(t *testing.T) {
	make := func(base string, _ *http.Client) model.Model {
		return openai.New(&openai.Options{APIKey: key, BaseURL: base, API: openai.Responses})
	}
	thinks := events(created, done(0, `{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"b2xk"}`),
		done(1, functionCall("a", "now", "{}")), ended("completed", ""))
	for _, body := range standin.Aliased(t, make, standin.Drip(thinks, 0), "gpt-6-sol") {
		require.Contains(t, string(body), `{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"b2xk"}`)
	}
}
