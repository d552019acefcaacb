package agentsfile_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/model"
)

// noCloud is an environment that nobody can sign in from.
func noCloud(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
		"AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION", "AZURE_CLIENT_ID", "AZURE_TENANT_ID", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
	} {
		t.Setenv(name, "")
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", none)
}

// Models of clouds are named as others are, need no key in a variable, and doctor asks
// whether somebody can sign in. No model is asked.
func TestClouds(t *testing.T) {
	noCloud(t)
	asked := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("got %s %s", r.Method, r.URL) }))
	defer asked.Close()
	t.Setenv("AZURE_KEY", "a-key-of-azure-0123")
	t.Setenv("AWS_KEY", "a-key-of-aws-0123456")
	write(t, `agents:
  a: {model: bedrock/global.anthropic.claude-opus-5-5, fallbacks: [vertex/claude-opus-5, near, azure/gpt], limits: {cost_usd: 1}}
  b: {model: house/gpt, fallbacks: [bedrock/amazon.nova-pro-v1:0, tuned]}
models:
  near: {provider: bedrock, model: eu.anthropic.claude-opus-5-5, region: eu-central-1, api_key_env: AWS_KEY, base_url: "`+asked.URL+`"}
  house/gpt: {provider: azure, model: my-gpt, base_url: "`+asked.URL+`", api_version: "2024-10-21", api_key_env: AZURE_KEY, api: chat_completions, window: 1000}
  tuned: {provider: vertex, model: endpoints/123, project: p, region: europe-west1}
  azure/gpt: {provider: azure, model: gpt-5.4, base_url: "`+asked.URL+`", price: {input: 1, output: 2}}
`)
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	require.Equal(t, []agentsfile.Key{{Env: "AWS_KEY", Set: true, Agents: []string{"a"}}, {Env: "AZURE_KEY", Set: true, Agents: []string{"b"}}}, f.Keys())
	require.NoError(t, f.MissingKey("a"))
	require.Equal(t, 4*agent.Dollar+4*agent.Dollar/10, f.Models()["near"].Info("").Price.Input)
	require.Equal(t, model.Info{Window: 1000}, f.Models()["house/gpt"].Info(""))
	tables := f.PriceTables()
	require.Len(t, tables, 2)
	require.Equal(t, "bedrock", tables[0].Provider)
	require.Equal(t, "vertex", tables[1].Provider)

	require.Empty(t, f.AskModels(t.Context()), "clouds are not asked as other servers are")
	states := f.AskClouds(t.Context())
	var names []string
	for _, s := range states {
		names = append(names, s.Name)
	}
	require.Equal(t, []string{"azure/gpt", "bedrock", "house/gpt", "near", "tuned", "vertex"}, names)
	require.ErrorContains(t, states[0].Err, "signing in to Entra failed")
	require.ErrorContains(t, states[1].Err, "there is no region; set AWS_REGION")
	require.NoError(t, states[2].Err)
	require.NoError(t, states[3].Err)
	require.ErrorContains(t, states[4].Err, "signing in to Google Cloud failed")
	require.ErrorContains(t, states[5].Err, "signing in to Google Cloud failed")
	for _, s := range states {
		if s.Err != nil {
			require.NotContains(t, s.Err.Error(), "0123")
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	states = f.AskClouds(over)
	require.NoError(t, states[2].Err, "with a key there is nothing to wait for")
	require.ErrorContains(t, states[5].Err, "signing in took longer")
}

// A field that a provider knows nothing of is refused with its line.
func TestFieldsOfClouds(t *testing.T) {
	for entry, want := range map[string]string{
		"{provider: openai, model: m, region: x}":               "fermata.yaml:4: models.x.region is not for provider openai",
		"{provider: bedrock, model: m, project: x}":             "fermata.yaml:4: models.x.project is not for provider bedrock",
		"{provider: vertex, model: m, api_key_env: X}":          "fermata.yaml:4: models.x.api_key_env is not for provider vertex",
		"{provider: vertex, model: m, api: responses}":          "fermata.yaml:4: models.x.api is not for provider vertex",
		"{provider: azure, model: m, keep_thinking: true}":      "fermata.yaml:4: models.x.keep_thinking is not for provider azure",
		"{provider: azure, model: m, base_url: \"a.example\"}":  "fermata.yaml:4: models.x.base_url must be an http or https URL with a host",
		"{provider: bedrock, model: m, api_version: 2024-10}":   "fermata.yaml:4: models.x.api_version is not for provider bedrock",
		"{provider: gemini, model: m, api_version: 2024-10-21}": "fermata.yaml:4: models.x.api_version is not for provider gemini",
	} {
		write(t, "agents:\n  a: {model: x}\nmodels:\n  x: "+entry+"\n")
		_, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
		require.ErrorContains(t, err, want, entry)
	}
}
