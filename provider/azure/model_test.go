package azure_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/azure"
	"github.com/fermata-agents/fermata/provider/openai"
)

const token = "eyJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiJ9.entra"

// bare is an environment that nothing is found in.
func bare(t *testing.T) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AZURE_") || strings.HasPrefix(name, "OPENAI_") || strings.HasPrefix(name, "IDENTITY_") {
			t.Setenv(name, "")
			require.NoError(t, os.Unsetenv(name))
		}
	}
}

// responses and chat are whole replies in the two forms.
const (
	responses = "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"message\",\"role\":\"assistant\",\"status\":\"completed\",\"content\":[{\"type\":\"output_text\",\"text\":\"Four.\"}]}}\n\n" +
		"data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":10,\"output_tokens\":2}}}\n\n"
	chat = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Four.\"},\"finish_reason\":\"stop\"}]}\n\n" +
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n"
)

func answer(w http.ResponseWriter, r *http.Request) {
	body := responses
	if strings.HasSuffix(r.URL.Path, "/chat/completions") {
		body = chat
	}
	standin.Answer(200, "text/event-stream", body)(w, r)
}

func ask(name string) *model.Request {
	return &model.Request{Model: name, Messages: []agent.Message{agent.TextMessage(agent.RoleUser, "What is two and two?")}, MaxOutputTokens: 50}
}

// identity is the server of a managed identity, whose n-th token lasts for so long.
func identity(t *testing.T, lasts func(n int32) time.Duration, status func() int) *atomic.Int32 {
	t.Helper()
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := status(); code != http.StatusOK || r.Header.Get("X-Identity-Header") != "proof" {
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, `{"error":"no"}`)
			return
		}
		i := n.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"%s-%d","expires_on":"%d","resource":%q,"token_type":"Bearer"}`, token, i, time.Now().Add(lasts(i)).Unix(), r.URL.Query().Get("resource"))
	}))
	t.Cleanup(s.Close)
	t.Setenv("IDENTITY_ENDPOINT", s.URL)
	t.Setenv("IDENTITY_HEADER", "proof")
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
	return &n
}

func fine() int { return http.StatusOK }

// A worker without a key signs in to Entra by the SDK's chain; a token is kept while it
// lasts, and renewed when it does not.
func TestEntra(t *testing.T) {
	for name, c := range map[string]struct {
		lasts time.Duration
		want  []string
	}{
		"kept":    {24 * time.Hour, []string{"Bearer " + token + "-1", "Bearer " + token + "-1"}},
		"renewed": {time.Second, []string{"Bearer " + token + "-1", "Bearer " + token + "-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			bare(t)
			identity(t, func(int32) time.Duration { return c.lasts }, fine)
			s := standin.Listen(t, answer)
			// The SDK keeps a machine's tokens for the whole process, by scope.
			m := azure.New(&azure.Options{Endpoint: s.URL, Scope: "https://" + name + ".example/.default"})
			var sent []string
			for i := range 2 {
				reply, _ := standin.Reply(t, m, ask("gpt-5.4"))
				require.Equal(t, "azure/gpt-5.4", reply.ProviderModel)
				require.NotContains(t, string(s.Bodies[i]), token)
				sent = append(sent, s.Heads[i].Get("Authorization"))
			}
			require.Equal(t, c.want, sent)
			require.Equal(t, []string{"/openai/v1/responses", "/openai/v1/responses"}, s.Paths)
			standin.Hides(t, token, token, m, azure.Options{})
		})
	}
}

// A token that Azure refuses is in no fault, even if Azure repeats it.
func TestRefusedToken(t *testing.T) {
	bare(t)
	identity(t, func(int32) time.Duration { return time.Hour }, fine)
	s := standin.Listen(t, func(w http.ResponseWriter, r *http.Request) {
		standin.Answer(401, "application/json", fmt.Sprintf(`{"error":{"code":"PermissionDenied","message":"%s lacks the role"}}`, r.Header.Get("Authorization")))(w, r)
	})
	fault := s.Fails(t, azure.New(&azure.Options{Endpoint: s.URL, Scope: "https://refused.example/.default"}), ask("gpt-5.4"), token)
	require.Equal(t, agent.FaultAuth, fault.Provider.Kind)
	require.Contains(t, fault.Message, "azure answered 401: Bearer [secret] lacks the role; check the worker's identity and its permissions")
}

// Without a key, an identity or an endpoint the call says what to set, and asks no model.
// A server of identities that has a bad moment is asked again by the next attempt.
func TestNobodySignsIn(t *testing.T) {
	bare(t)
	s := standin.Listen(t, answer)
	requireFault(t, azure.New(nil), agent.FaultBadRequest, "azure: there is no endpoint; set AZURE_OPENAI_ENDPOINT")
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
	requireFault(t, azure.New(&azure.Options{Endpoint: s.URL}), agent.FaultAuth, "azure: signing in to Entra failed; check the worker's identity, or set AZURE_OPENAI_API_KEY")
	require.Zero(t, s.Requests())

	var refusing atomic.Bool
	refusing.Store(true)
	m := azure.New(&azure.Options{Endpoint: s.URL, Credential: failing{&refusing}})
	requireFault(t, m, agent.FaultTransient, "signing in to Entra failed")
	refusing.Store(false)
	require.NoError(t, m.Check(t.Context()))
	require.Zero(t, s.Requests(), "Check asks no model")
	standin.Reply(t, m, ask("gpt-5.4"))
}

// failing is a credential whose server may have a bad moment.
type failing struct{ refusing *atomic.Bool }

func (f failing) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if f.refusing.Load() {
		return azcore.AccessToken{}, fmt.Errorf("asking for a token: %w", &azcore.ResponseError{StatusCode: 503, RawResponse: &http.Response{StatusCode: 503, Request: &http.Request{}}})
	}
	return azcore.AccessToken{Token: strings.Join(o.Scopes, " "), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func requireFault(t *testing.T, m *azure.Model, kind agent.FaultKind, says string) {
	t.Helper()
	_, err := m.Generate(t.Context(), ask("gpt-5.4"), standin.Silent)
	for _, err := range []error{err, m.Check(t.Context())} {
		var fault *agent.Error
		require.True(t, errors.As(err, &fault), err)
		require.Equal(t, kind, fault.Provider.Kind, err)
		require.Contains(t, fault.Message, says)
	}
}

// Each version of the API has its address, and a key goes in Azure's own header.
func TestAddresses(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	for _, c := range []struct {
		o    azure.Options
		want string
	}{
		{azure.Options{}, "/openai/v1/responses"},
		{azure.Options{API: openai.ChatCompletions}, "/openai/v1/chat/completions"},
		{azure.Options{APIVersion: "preview"}, "/openai/v1/responses?api-version=preview"},
		{azure.Options{APIVersion: "2024-10-21"}, "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21"},
		{azure.Options{APIVersion: "2025-04-01-preview", API: openai.Responses}, "/openai/responses?api-version=2025-04-01-preview"},
	} {
		for _, suffix := range []string{"", "/", "/openai/v1", "/openai/v1/"} {
			bare(t)
			var uri string
			s := standin.Listen(t, func(w http.ResponseWriter, r *http.Request) {
				uri = r.RequestURI
				answer(w, r)
			})
			o := c.o
			o.Endpoint, o.APIKey = s.URL+suffix, key
			standin.Reply(t, azure.New(&o), ask("my gpt"))
			require.Equal(t, c.want, uri)
			require.Equal(t, key, s.Heads[0].Get("Api-Key"))
			require.Empty(t, s.Heads[0].Get("Authorization"))
			require.NotContains(t, string(s.Bodies[0]), `"max_tokens"`, "it is asked as OpenAI's own models are")
			standin.Hides(t, key, key, azure.New(&o), o, &o)
		}
	}
}

// What the environment says is taken: nothing is sent elsewhere.
func TestEnvironment(t *testing.T) {
	bare(t)
	s := standin.Listen(t, answer)
	t.Setenv("AZURE_OPENAI_ENDPOINT", s.URL)
	t.Setenv("AZURE_OPENAI_API_KEY", "a-key-of-azure-0123")
	t.Setenv("OPENAI_API_KEY", "a-key-of-openai-0123")
	t.Setenv("OPENAI_API_VERSION", "2024-10-21")
	standin.Reply(t, azure.New(nil), ask("gpt-5.4"))
	require.Equal(t, "a-key-of-azure-0123", s.Heads[0].Get("Api-Key"))
	require.Equal(t, []string{"/openai/deployments/gpt-5.4/chat/completions"}, s.Paths)
	require.NotContains(t, fmt.Sprint(s.Heads[0]), "openai-0123")
}

// A token is asked for in the endpoint's own cloud.
func TestScopes(t *testing.T) {
	bare(t)
	for host, want := range map[string]string{
		"https://a.openai.azure.com": "https://cognitiveservices.azure.com/.default", "https://a.services.ai.azure.com/": "https://cognitiveservices.azure.com/.default",
		"https://a.openai.azure.us": "https://cognitiveservices.azure.us/.default",
	} {
		var sent string
		var refusing atomic.Bool
		client := &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
			sent = r.Header.Get("Authorization")
			return nil, errors.New("nobody is there")
		})}
		_, err := azure.New(&azure.Options{Endpoint: host, Credential: failing{&refusing}, HTTPClient: client}).Generate(t.Context(), ask("gpt-5.4"), standin.Silent)
		require.Error(t, err)
		require.Equal(t, "Bearer "+want, sent)
	}
}

type trip func(*http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func TestReach(t *testing.T) {
	bare(t)
	at := func(base string, client *http.Client) model.Model {
		return azure.New(&azure.Options{Endpoint: base, APIKey: "a-key-of-azure-0123", HTTPClient: client})
	}
	standin.Unreachable(t, at, ask("gpt-5.4"), "base URL")
	standin.ClientTimeout(t, at, ask("gpt-5.4"), "a-key-of-azure-0123")
	standin.Redirect(t, at, ask("gpt-5.4"), "a-key-of-azure-0123")
	standin.OutputReaches(t, at, answer, *ask("gpt-5.4"), []agent.ToolSpec{{Name: "now"}})
}

// A deployment named after a model has its window, and no price is guessed.
func TestInfo(t *testing.T) {
	info := azure.New(nil).Info("gpt-5.4")
	require.Equal(t, 1_050_000, info.Window)
	require.Zero(t, info.Price)
	require.Zero(t, azure.New(nil).Info("my gpt"))
}
