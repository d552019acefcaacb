package agentsfile_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/model"
)

// A provider's key may lie in a file, which nobody else may read, and is then in no
// environment. A server of the user's own is not told it.
func TestProvidersKeysFromFiles(t *testing.T) {
	seen := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("X-Api-Key")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, []byte("sk-from-a-file\n"), 0o644))
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("ANTHROPIC_API_KEY_FILE", path)
	t.Setenv("ANTHROPIC_BASE_URL", server.URL)
	write(t, "agents: {a: {model: anthropic/m}}\nmodels:\n  mine: {provider: anthropic, base_url: \""+server.URL+"\", model: m}\n  named: {provider: anthropic, base_url: \""+server.URL+"\", model: m, api_key_env: MY_KEY}\n")
	t.Setenv("MY_KEY_FILE", path)
	_, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.ErrorContains(t, err, "ANTHROPIC_API_KEY_FILE: others may read or write")

	require.NoError(t, os.Chmod(path, 0o440))
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	require.True(t, f.Keys()[0].Set)
	for name, want := range map[string]string{"anthropic": "sk-from-a-file", "mine": "none", "named": "sk-from-a-file"} {
		_, err = f.Models()[name].Generate(t.Context(), &model.Request{Model: "m", Messages: []agent.Message{agent.TextMessage(agent.RoleUser, "hi")}}, nil)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "sk-from")
		require.Equal(t, want, <-seen, name)
	}
}
