package vertex_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/vertex"
)

const (
	token   = "ya29.a-token-of-google"
	sonnet  = "claude-sonnet-4-5@20250929"
	flash   = "gemini-3.5-flash"
	secrets = "GOCSPX-a-client-secret"
)

// bare is an environment that nothing is found in.
func bare(t *testing.T) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "GOOGLE_") || strings.HasPrefix(name, "GEMINI_") || strings.HasPrefix(name, "ANTHROPIC_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("HOME", t.TempDir())
}

// login writes the file of a login, whose tokens come from a server of ours. Its n-th
// token lasts for so long.
func login(t *testing.T, lasts func(n int32) time.Duration, status func() int) *atomic.Int32 {
	t.Helper()
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if code := status(); code != http.StatusOK || r.FormValue("refresh_token") != "refresh-1" {
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, `{"error":"invalid_grant"}`)
			return
		}
		i := n.Add(1)
		_, _ = fmt.Fprintf(w, `{"access_token":"%s-%d","expires_in":%d,"token_type":"Bearer"}`, token, i, int(lasts(i).Seconds()))
	}))
	t.Cleanup(s.Close)
	path := filepath.Join(t.TempDir(), "login.json")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil,
		`{"type":"authorized_user","client_id":"id","client_secret":%q,"refresh_token":"refresh-1","token_uri":%q}`, secrets, s.URL), 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
	return &n
}

func hour(int32) time.Duration { return time.Hour }
func fine() int                { return http.StatusOK }

// claude and gemini are whole replies in the two forms.
const (
	claude = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"Hm.\",\"signature\":\"Y2xhdWRl\"}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"now\",\"input\":{}}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":2}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	gemini = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"now\",\"args\":{}},\"thoughtSignature\":\"Z2VtaW5p\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":10,\"candidatesTokenCount\":2}}\n\n"
)

func answer(w http.ResponseWriter, r *http.Request) {
	body := gemini
	if strings.Contains(r.URL.Path, "/anthropic/") {
		body = claude
	}
	standin.Answer(200, "text/event-stream", body)(w, r)
}

func ask(name string) *model.Request {
	return &model.Request{Model: name, Messages: []agent.Message{agent.TextMessage(agent.RoleUser, "What time is it?")}}
}

// Both families are asked in Vertex's form, with a token that is kept while it lasts and
// renewed when it does not.
func TestBothFamilies(t *testing.T) {
	for name, c := range map[string]struct {
		lasts time.Duration
		last  string
	}{"kept": {time.Hour, token + "-1"}, "renewed": {time.Second, token + "-2"}} {
		t.Run(name, func(t *testing.T) {
			bare(t)
			login(t, func(int32) time.Duration { return c.lasts }, fine)
			var uris []string
			s := standin.Listen(t, func(w http.ResponseWriter, r *http.Request) {
				uris = append(uris, r.RequestURI)
				answer(w, r)
			})
			m := vertex.New(&vertex.Options{BaseURL: s.URL, Project: "my-project", Location: "europe-west1"})
			reply, _ := standin.Reply(t, m, ask(sonnet))
			require.Equal(t, agent.Usage{Input: 10, Output: 2}, reply.Usage)
			reply, _ = standin.Reply(t, m, ask(flash))
			require.Equal(t, agent.Usage{Input: 10, Output: 2}, reply.Usage)
			require.Equal(t, []string{
				"/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/" + sonnet + ":streamRawPredict",
				"/v1beta1/projects/my-project/locations/europe-west1/publishers/google/models/" + flash + ":streamGenerateContent?alt=sse",
			}, uris)
			require.Contains(t, string(s.Bodies[0]), `"anthropic_version":"vertex-2023-10-16"`)
			require.NotContains(t, string(s.Bodies[0]), `"model"`)
			require.Equal(t, "Bearer "+token+"-1", s.Heads[0].Get("Authorization"))
			require.Equal(t, "Bearer "+c.last, s.Heads[1].Get("Authorization"))
			for i, h := range s.Heads {
				require.Empty(t, h.Get("X-Api-Key")+h.Get("X-Goog-Api-Key"))
				require.NotContains(t, string(s.Bodies[i]), token)
			}
			standin.Hides(t, token, secrets, m, vertex.Options{})
		})
	}
}

// A family is given its own thoughts back and never the other's.
func TestThoughtsStayInTheFamily(t *testing.T) {
	bare(t)
	login(t, hour, fine)
	t.Setenv("GOOGLE_CLOUD_PROJECT", "my-project")
	for _, c := range []struct{ first, then, mark string }{
		{sonnet, sonnet, "Y2xhdWRl"}, {flash, flash, "Z2VtaW5p"}, {sonnet, flash, ""}, {flash, sonnet, ""},
	} {
		s := standin.Listen(t, answer)
		m := vertex.New(&vertex.Options{BaseURL: s.URL})
		req := ask(c.first)
		reply, _ := standin.Reply(t, m, req)
		for i, p := range reply.Parts {
			if p.Type == agent.PartToolCall {
				reply.Parts[i].Call.ID = "t1.1"
			}
		}
		req.Messages = append(req.Messages, agent.Message{Role: agent.RoleAssistant, Model: "vertex/" + c.first, ProviderModel: reply.ProviderModel, Parts: reply.Parts},
			agent.Message{Role: agent.RoleTool, Parts: []agent.Part{standin.Result("t1.1", "now", agent.CallOK, "noon")}})
		req.Model = c.then
		standin.Reply(t, m, req)
		for _, mark := range []string{"Y2xhdWRl", "Z2VtaW5p"} {
			require.Equal(t, mark == c.mark, strings.Contains(string(s.Bodies[1]), mark), "%s then %s: %s", c.first, c.then, s.Bodies[1])
		}
	}
}

// Without a project or an account the call says what to set, and asks no model. A server
// of tokens that has a bad moment is asked again by the next attempt.
func TestNobodySignsIn(t *testing.T) {
	bare(t)
	s := standin.Listen(t, answer)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none.json"))
	requireFault(t, vertex.New(&vertex.Options{BaseURL: s.URL}), agent.FaultAuth, "vertex: signing in to Google Cloud failed; check the worker's application default credentials")
	var refusing atomic.Int32
	refusing.Store(http.StatusServiceUnavailable)
	login(t, hour, func() int { return int(refusing.Load()) })
	requireFault(t, vertex.New(&vertex.Options{BaseURL: s.URL}), agent.FaultTransient, "signing in to Google Cloud failed")
	refusing.Store(http.StatusBadRequest)
	requireFault(t, vertex.New(&vertex.Options{BaseURL: s.URL}), agent.FaultAuth, "signing in to Google Cloud failed")
	refusing.Store(http.StatusOK)
	requireFault(t, vertex.New(&vertex.Options{BaseURL: s.URL}), agent.FaultBadRequest, "vertex: there is no project; set GOOGLE_CLOUD_PROJECT")
	require.Zero(t, s.Requests())
	m := vertex.New(&vertex.Options{BaseURL: s.URL, Project: "my-project"})
	require.NoError(t, m.Check(t.Context()))
	require.Zero(t, s.Requests(), "Check asks no model")
}

func requireFault(t *testing.T, m *vertex.Model, kind agent.FaultKind, says string) {
	t.Helper()
	for _, name := range []string{sonnet, flash} {
		_, err := m.Generate(t.Context(), ask(name), standin.Silent)
		for _, err := range []error{err, m.Check(t.Context())} {
			var fault *agent.Error
			require.True(t, errors.As(err, &fault), err)
			require.Equal(t, kind, fault.Provider.Kind, err)
			require.Contains(t, fault.Message, says)
			require.NotContains(t, fault.Message, secrets)
		}
	}
}

// A token that Vertex refuses is in no fault, even if Vertex repeats it.
func TestRefusedToken(t *testing.T) {
	for _, name := range []string{sonnet, flash} {
		s := standin.Listen(t, func(w http.ResponseWriter, r *http.Request) {
			standin.Answer(403, "application/json", fmt.Sprintf(`{"error":{"code":403,"status":"PERMISSION_DENIED","type":"permission_error","message":"%s may not predict"}}`, r.Header.Get("Authorization")))(w, r)
		})
		m := at(s.URL, nil)
		fault := s.Fails(t, m, ask(name), token)
		require.Equal(t, agent.FaultAuth, fault.Provider.Kind)
		require.Contains(t, fault.Message, "answered 403: Bearer [secret] may not predict; check the worker's identity and its permissions")
	}
}

// at makes a Model that asks elsewhere, and has its token.
func at(base string, client *http.Client) model.Model {
	return vertex.New(&vertex.Options{BaseURL: base, HTTPClient: client, Project: "my-project", Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token})})
}

func TestReach(t *testing.T) {
	bare(t)
	for _, name := range []string{sonnet, flash} {
		standin.Unreachable(t, at, ask(name), "the base URL")
		standin.ClientTimeout(t, at, ask(name), token)
		standin.Redirect(t, at, ask(name), token)
		standin.WrongURLs(t, at, ask(name))
		standin.OutputReaches(t, at, answer, *ask(name), []agent.ToolSpec{{Name: "now"}})
	}
}

// Each location has its address; a tuned model has its own.
func TestAddresses(t *testing.T) {
	bare(t)
	for location, host := range map[string]string{
		"": "aiplatform.googleapis.com", "global": "aiplatform.googleapis.com", "eu": "aiplatform.eu.rep.googleapis.com", "europe-west1": "europe-west1-aiplatform.googleapis.com",
	} {
		for name, suffix := range map[string]string{sonnet: "publishers/anthropic/models/" + sonnet, flash: "publishers/google/models/" + flash, "endpoints/123": "endpoints/123"} {
			var asked string
			client := &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
				asked = r.URL.Host + r.URL.Path
				return nil, errors.New("nobody is there")
			})}
			m := vertex.New(&vertex.Options{Location: location, Project: "my-project", HTTPClient: client, Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token})})
			_, err := m.Generate(t.Context(), ask(name), standin.Silent)
			require.Error(t, err)
			require.True(t, strings.HasPrefix(asked, host+"/v1"), asked)
			require.Contains(t, asked, "/projects/my-project/locations/")
			require.Contains(t, asked, suffix+":stream")
		}
	}
}

type trip func(*http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// Claude costs what Anthropic asks, and a tenth more nearer than everywhere. Of Gemini
// the window is known, and no price is guessed.
func TestInfo(t *testing.T) {
	bare(t)
	m, near := vertex.New(nil), vertex.New(&vertex.Options{Location: "europe-west1"})
	require.Equal(t, 3*agent.Dollar, m.Info(sonnet).Price.Input)
	require.Equal(t, 3*agent.Dollar+3*agent.Dollar/10, near.Info(sonnet).Price.Input)
	require.Equal(t, 200_000, m.Info(sonnet).Window)
	require.Equal(t, 1_048_576, m.Info(flash).Window)
	require.Zero(t, m.Info(flash).Price)
	require.Zero(t, m.Info("claude-of-tomorrow"))
}

// A level of reasoning is in the words of the version, also where Vertex marks it in its
// own way.
func TestReasoning(t *testing.T) {
	s := standin.Listen(t, answer)
	req := ask(sonnet)
	req.Reasoning = agent.ReasoningHigh
	standin.Reply(t, at(s.URL, nil), req)
	require.Contains(t, string(s.Bodies[0]), `"thinking":{"budget_tokens":`)
}
