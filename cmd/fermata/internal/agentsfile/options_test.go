package agentsfile_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/model"
)

// What a model's entry says of its requests is sent, with variables filled in; doctor and
// the check of keys know the variables, and nothing shows a value.
func TestWaysOfAModel(t *testing.T) {
	const secret = "a-key-of-a-gateway-0123"
	var head http.Header
	var body map[string]any
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		head, body = r.Header.Clone(), nil
		_ = json.Unmarshal(data, &body)
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"no `+secret+`"}}`)
	}))
	defer s.Close()
	text := `agents:
  a: {model: gate}
models:
  gate:
    provider: openai
    model: gpt-5.5
    base_url: "` + s.URL + `/v1"
    headers: {X-Team: research, x-portkey-provider: p, X-Gateway-Key: "Bearer ${GATEWAY_KEY}"}
    body: {top_k: 40, big: 1234567890123456789, provider: {order: [a, "${GATEWAY_KEY}"]}}
    max_tokens_field: max_tokens
    stream_options: false
    keep_call_ids: true
    tool_choice: required
    service_tier: flex
`
	ask := func() error {
		f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
		require.NoError(t, err)
		_, err = f.Models()["gate"].Generate(t.Context(), &model.Request{Messages: []agent.Message{agent.TextMessage(agent.RoleUser, "Hi")}, MaxOutputTokens: 9}, func(model.Delta) {})
		return err
	}
	write(t, text)
	t.Setenv("GATEWAY_KEY", "")
	require.ErrorContains(t, ask(), "gate was not called: set GATEWAY_KEY")
	require.Nil(t, head)
	t.Setenv("GATEWAY_KEY", secret)
	err := ask()
	require.ErrorContains(t, err, "no [secret]")
	require.NotContains(t, err.Error(), secret)
	require.Equal(t, "research", head.Get("X-Team"))
	require.Equal(t, "Bearer "+secret, head.Get("X-Gateway-Key"))
	require.Equal(t, "flex", body["service_tier"])
	require.EqualValues(t, 40, body["top_k"])
	require.EqualValues(t, 9, body["max_tokens"])
	require.Equal(t, []any{"a", secret}, body["provider"].(map[string]any)["order"])
	require.NotContains(t, body, "stream_options")

	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	require.Equal(t, []agentsfile.Key{{Env: "GATEWAY_KEY", Set: true, Agents: []string{"a"}}}, f.Keys())
	require.Equal(t, "service_tier flex, tool_choice required, max_tokens_field max_tokens, stream_options false, keep_call_ids true, headers X-Gateway-Key X-Team x-portkey-provider, body big provider top_k", f.ModelSettings("gate"))
	require.True(t, f.Priced("gate"))
	require.Equal(t, 5*agent.Dollar/2, f.Models()["gate"].Info("").Price.Input, "the tier's")
	f.AskModels(t.Context())
	require.Equal(t, "Bearer "+secret, head.Get("X-Gateway-Key"), "doctor asks as a call would")
	t.Setenv("GATEWAY_KEY", "")
	require.ErrorContains(t, f.MissingKey("a"), "set GATEWAY_KEY in the environment")
}

// What can't be meant is refused with the line of its field.
func TestFieldsOfModels(t *testing.T) {
	for entry, want := range map[string]string{
		"{provider: openai, model: m, cache_ttl: 1h}":                                     "models.x.cache_ttl is not for provider openai",
		"{provider: gemini, model: m, citations: true}":                                   "models.x.citations is not for provider gemini",
		"{provider: gemini, model: m, server_tools: [web_search]}":                        "models.x.server_tools is not for provider gemini",
		"{provider: openai, model: m, api: chat_completions, server_tools: [web_search]}": "models.x.server_tools are for responses only",
		"{provider: anthropic, model: m, server_tools: [telepathy]}":                      `models.x.server_tools may have web_search and code_execution, not "telepathy"`,
		"{provider: anthropic, model: m, tool_choice: required}":                          "models.x.tool_choice is not for provider anthropic",
		"{provider: vertex, model: m, service_tier: flex}":                                "models.x.service_tier is not for provider vertex",
		"{provider: anthropic, model: m, cache_ttl: 2h}":                                  "models.x.cache_ttl must be 5m or 1h, not 2h",
		"{provider: bedrock, model: m, service_tier: cheap}":                              "models.x.service_tier must be default, flex, priority or reserved",
		"{provider: gemini, model: m, tool_choice: now}":                                  `models.x.tool_choice must be auto or required, not "now"`,
		"{provider: openai, model: m, max_tokens_field: max_tokens}":                      "models.x.max_tokens_field is for chat_completions only",
		"{provider: azure, model: m, api: soap}":                                          "models.x.api must be chat_completions or responses",
		"{provider: openai, model: m, headers: {Authorization: x}}":                       "models.x.headers.Authorization looks like a secret: write a variable of the environment, as ${NAME}",
		"{provider: openai, model: m, headers: {Authorization: \"${TOKEN}\"}}":            "models.x.headers.Authorization is set by the adapter or by the connection",
		"{provider: openai, model: m, headers: {X-Api-Token: sk-1}}":                      "models.x.headers.X-Api-Token looks like a secret",
		"{provider: openai, model: m, headers: {x-apikey: sk-1}}":                         "models.x.headers.x-apikey looks like a secret",
		"{provider: openai, model: m, headers: {X-Team: \"${1 2}\"}}":                     `models.x.headers.X-Team names the variable "1 2", which can't be one`,
		"{provider: openai, model: m, headers: {Transfer-Encoding: x}}":                   "models.x.headers.Transfer-Encoding is set by the adapter or by the connection",
		"{provider: openai, model: m, body: {stream: false}}":                             "models.x.body.stream is written by the adapter itself",
		"{provider: anthropic, model: m, body: {output_config: {effort: low}}}":           "models.x.body.output_config.effort is written by the adapter itself",
		"{provider: gemini, model: m, body: {generationConfig: 7}}":                       "models.x.body.generationConfig must be an object",
		"{provider: openai, model: m, body: {x: {api_key: sk-1}}}":                        "models.x.body.x.api_key looks like a secret",
		"{provider: openai, model: m, body: [1]}":                                         "models.x.body needs fields, such as {top_k: 40}",
	} {
		write(t, "agents:\n  a: {model: x}\nmodels:\n  x: "+entry+"\n")
		_, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
		require.ErrorContains(t, err, "fermata.yaml:4: "+want, entry)
		require.NotContains(t, err.Error(), "sk-1")
	}
}

// A tier whose price nobody knows is told, and a limit of cost is refused with it.
func TestTierWithoutPrice(t *testing.T) {
	const models = "models:\n  x: {provider: gemini, model: gemini-3.5-flash, service_tier: flex}\n"
	write(t, "agents:\n  a: {model: x}\n"+models)
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	require.False(t, f.Priced("x"))
	write(t, "agents:\n  a: {model: x, limits: {cost_usd: 1}}\n"+models)
	_, err = agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.ErrorContains(t, err, "since the price of x is not known")
}

// No variable that makes a worker one goes to a server that the file names.
func TestTheWorkersOwnVariablesAreGivenToNobody(t *testing.T) {
	t.Setenv("FERMATA_APPROVAL_KEYS", "k1:s3cret")
	const models, servers = "agents: {a: {model: m}}\nmodels:\n  m: {provider: openai, model: x, base_url: \"http://127.0.0.1:1/v1\", ", "agents: {a: {model: openai/x, tools: [\"mcp:m\"]}}\nmcp:\n  m: {"
	for text, at := range map[string]string{
		models + `api_key_env: FERMATA_APPROVAL_KEYS}`:                                                "models.m.api_key_env",
		models + `headers: {X-Key: "${FERMATA_APPROVAL_KEYS}"}}`:                                      "models.m.headers.X-Key",
		models + `body: {x: [{y: "${TEMPORAL_API_KEY}"}]}}`:                                           "models.m.body.x[0].y",
		servers + `command: [cat], env: {K: $FERMATA_APPROVAL_KEYS}}`:                                 "mcp.m.env.K",
		servers + `url: "https://e.example", headers: {Authorization: "Bearer ${TEMPORAL_API_KEY}"}}`: "mcp.m.headers.Authorization",
	} {
		write(t, text+"\n")
		_, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
		require.ErrorContains(t, err, "fermata.yaml:3: "+at+" names ", text)
		require.ErrorContains(t, err, "which is the worker's own and never given away")
		require.NotContains(t, err.Error(), "s3cret")
	}
}
