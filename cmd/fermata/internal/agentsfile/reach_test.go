package agentsfile_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
)

// The servers of models are asked whether they are there, and for the models that they have.
func TestServersOfModels(t *testing.T) {
	const key = "sk-of-the-server"
	lists := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("got %s %s with %v", r.Method, r.URL, r.Header)
		}
		_, _ = w.Write([]byte(`{"object":"list","data":[{"id":"llama"},{"id":"qwen"}]}`))
	}))
	defer lists.Close()
	dumb, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	require.NoError(t, err)
	defer dumb.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	t.Setenv("THE_KEY", key)
	write(t, `agents:
  a: {model: here, fallbacks: [other, dumb, gone]}
  b: {model: here}
models:
  here: {provider: openai, model: qwen, base_url: "`+lists.URL+`/v1", api_key_env: THE_KEY}
  other: {provider: openai, model: phi, base_url: "`+lists.URL+`/v1/", api_key_env: THE_KEY}
  dumb: {provider: gemini, model: m, base_url: "http://me:secret@`+dumb.Addr().String()+`"}
  gone: {provider: anthropic, model: m, base_url: "http://`+gone.Addr().String()+`"}
  unused: {provider: openai, model: m, base_url: "http://`+gone.Addr().String()+`"}
`)
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	s := f.AskModels(t.Context())
	require.Len(t, s, 4)
	require.EqualError(t, s[0].Err, "dumb: nothing answers at http://me:xxxxx@"+dumb.Addr().String()+" within 5s")
	require.ErrorContains(t, s[1].Err, "gone: nothing answers at http://"+gone.Addr().String()+": dial tcp")
	require.Equal(t, agentsfile.ModelState{Name: "here", URL: lists.URL + "/v1", Listed: 2}, s[2])
	require.Equal(t, agentsfile.ModelState{Name: "other", URL: lists.URL + "/v1/", Listed: 2, Missing: true}, s[3])
}

// A server that refuses the key answers nothing else.
func TestServersThatRefuseTheKey(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refuses.Close()
	t.Setenv("WRONG_KEY", "sk-that-nobody-knows")
	t.Setenv("NO_KEY", "")
	write(t, `agents:
  a: {model: keyless, fallbacks: [other, unset, wrong]}
models:
  keyless: {provider: openai, model: m, base_url: "`+refuses.URL+`"}
  other: {provider: anthropic, model: m, base_url: "`+refuses.URL+`", api_key_env: WRONG_KEY}
  unset: {provider: openai, model: m, base_url: "`+refuses.URL+`", api_key_env: NO_KEY}
  wrong: {provider: openai, model: m, base_url: "`+refuses.URL+`", api_key_env: WRONG_KEY}
`)
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	s := f.AskModels(t.Context())
	require.EqualError(t, s[0].Err, "keyless: "+refuses.URL+" needs a key, and api_key_env of models.keyless names none")
	require.NoError(t, s[1].Err, "it was not given its key")
	require.EqualError(t, s[2].Err, "unset: "+refuses.URL+" needs a key, and NO_KEY is not set")
	require.EqualError(t, s[3].Err, "wrong: "+refuses.URL+" refused the key in WRONG_KEY")
	require.Equal(t, agent.CodeProviderAuth, agent.CodeOf(s[3].Err))
}
