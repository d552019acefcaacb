package agentsfile_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
)

// A server that wants tokens names where its client's secret is, and never the secret.
func TestOAuthOfServers(t *testing.T) {
	const head = "agents:\n  a:\n    model: script:script.yaml\n    tools: [\"mcp:x\"]\nmcp:\n  x: {"
	for entry, words := range map[string]string{
		"command: [cat], oauth: {}": "mcp.x.oauth belongs to a server with a url",
		`url: "https://x.example.com/mcp", oauth: {client: c, secret: s3cret, issuer: "https://i.example.com"}`:                                                                              "mcp.x.oauth.secret needs a variable of the environment",
		`url: "https://x.example.com/mcp", oauth: {grant: client_credentials, client: c}`:                                                                                                    "needs a client and its secret",
		`url: "https://x.example.com/mcp", oauth: {client: c, secret: "${X_SECRET}"}`:                                                                                                        "name the issuer",
		`url: "https://x.example.com/mcp", oauth: {client: c, key: k.pem}`:                                                                                                                   "name the issuer",
		`url: "https://x.example.com/mcp", oauth: {grant: jwt_bearer, issuer: "https://i.example.com"}`:                                                                                      "needs an assertion",
		`url: "https://x.example.com/mcp", oauth: {grant: jwt_bearer, assertion: t, issuer: "https://i.example.com", exchange: {url: "https://idp.example.com", client: c, secret: s3cret}}`: "mcp.x.oauth.exchange.secret needs a variable of the environment",
		`url: "https://x.example.com/mcp", oauth: {exchange: {url: "https://idp.example.com", client: c}}`:                                                                                   "exchange belongs to grant jwt_bearer",
		`url: "https://x.example.com/mcp", oauth: {scope: x}`:                                                                                                                                "scope",
	} {
		write(t, head+entry+"}\n")
		_, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
		require.ErrorContains(t, err, words)
		require.ErrorContains(t, err, "fermata.yaml:6: ")
	}
	write(t, head+`url: "https://x.example.com/mcp", oauth: {client: c, secret: "${X_SECRET}", issuer: "https://i.example.com"}`+"}\n")
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	_, err = f.Open(nil, nil)
	require.ErrorContains(t, err, "fermata.yaml:6: mcp.x: oauth.secret names X_SECRET, which is not set in the environment")
	t.Setenv("X_SECRET", "s3cret")
	kit, err := f.Open(nil, nil)
	require.NoError(t, err)
	require.NoError(t, kit.Close())
}

// Whoever asks whether a server answers waits for some seconds at most, whatever it may take in a run.
func TestServerThatIsAskedAndSaysNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	require.NoError(t, err)
	defer listener.Close()
	url := "http://" + listener.Addr().String() + "/mcp"
	write(t, "agents:\n  a:\n    model: script:script.yaml\n    tools: [\"mcp:x\"]\nmcp:\n  x: {url: \""+url+"\", start_timeout: 5m}\n")
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	states := f.AskServers(t.Context())
	require.Len(t, states, 1)
	require.ErrorContains(t, states[0].Err, "the MCP server x did not answer within 5s ("+url+")")
}

// Whoever asks whether a server answers that wants a sign-in leaves nothing behind at the
// authorization server.
func TestServerThatWantsASignIn(t *testing.T) {
	var server *httptest.Server
	asked := make(chan string, 100)
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked <- req.Method + " " + req.URL.Path
		w.Header().Set("Content-Type", "application/json")
		switch req.URL.Path {
		case "/.well-known/oauth-protected-resource/mcp":
			fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":["%s"]}`, server.URL, server.URL)
		case "/.well-known/oauth-authorization-server":
			fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%[1]q,"token_endpoint":%[1]q,"registration_endpoint":"%[2]s/register","code_challenge_methods_supported":["S256"]}`, server.URL, server.URL)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	write(t, "agents:\n  a:\n    model: script:script.yaml\n    tools: [\"mcp:x\"]\nmcp:\n  x: {url: \""+server.URL+"/mcp\", oauth: {}}\n")
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	states := f.AskServers(t.Context())
	require.NoError(t, states[0].Err)
	require.True(t, states[0].SignIn)
	close(asked)
	for what := range asked {
		require.NotContains(t, what, "register")
	}
}

// Skills of a server need the server. Without an optional one, agents go without its skills.
func TestSkillsOfServers(t *testing.T) {
	const head = "agents:\n  a: {model: \"script:script.yaml\", skills: [\"mcp:x\", \"mcp:x/refunds\"]}\n"
	write(t, head)
	_, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.ErrorContains(t, err, `agents.a.skills[0]: there is no server "x" under mcp`)
	require.ErrorIs(t, err, agent.CodeNotFound)
	for optional, want := range map[string]string{"": "the skills of the MCP server x: ", ", optional: true": ""} {
		write(t, head+"mcp:\n  x: {url: \"http://127.0.0.1:1/mcp\", start_timeout: 50ms"+optional+"}\n")
		f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
		require.NoError(t, err)
		require.False(t, f.UsesServer("x"), "it has no tools of it")
		kit, err := f.OpenSkills(t.Context())
		if want != "" {
			require.ErrorContains(t, err, want)
		} else {
			require.NoError(t, err)
			require.Len(t, kit.Without(), 1)
		}
		require.Empty(t, kit.Agents()[0].Skills)
		require.Len(t, f.Agents[0].Skills, 2)
		require.NoError(t, kit.Close())
	}
}
