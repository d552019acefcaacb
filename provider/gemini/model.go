package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/genai"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

const (
	defaultName    = "gemini"
	defaultBaseURL = "https://generativelanguage.googleapis.com"
	version        = "v1beta"

	envKey      = "GEMINI_API_KEY"
	envOtherKey = "GOOGLE_API_KEY"
	envBaseURL  = "GOOGLE_GEMINI_BASE_URL"
)

// Model calls all models of the provider. It is safe for concurrent use. Make one with
// [New].
type Model struct {
	name     string
	endpoint *model.Endpoint
	signIn   model.SignIn
	tier     genai.ServiceTier
	choice   model.ToolChoice
	// send sends a request. It alone knows the address and, if there is no token, the
	// key.
	send func(ctx context.Context, name, token string, body []byte) (*http.Response, error)
	// unusable is why every call fails; nil if calls can be made.
	unusable error
}

var _ model.Model = (*Model)(nil)

// New returns a Model; o may be nil. It sends nothing. If something is missing, such as
// the key, the first call fails: a worker that never calls this provider does not need
// its key.
func New(o *Options) *Model {
	if o == nil {
		o = &Options{}
	}
	key, base := o.apiKey(), o.baseURL()
	m := &Model{
		name: o.name(), endpoint: model.NewEndpoint(o.name(), base, key).Hiding(o.Extra.Secrets...), signIn: o.SignIn,
		tier: genai.ServiceTier(o.ServiceTier), choice: o.ToolChoice, send: sender(base, key, o.Extra.Client(o.HTTPClient)),
	}
	m.unusable = m.endpoint.WrongURL("https://host", envBaseURL)
	switch err := o.Check(); {
	case m.unusable != nil:
	case err != nil:
		m.unusable = m.endpoint.Faultf(agent.FaultBadRequest, 0, 0, "%s: %v", m.name, err)
	case key == "" && o.SignIn == nil:
		m.unusable = m.endpoint.NoKey(envKey + " or " + envOtherKey)
	}
	return m
}

// sender returns a function that sends requests to base with a key. The name of a tuned
// model includes its folder, "tunedModels/x"; any other name x means "models/x".
func sender(base, key string, client *http.Client) func(ctx context.Context, name, token string, body []byte) (*http.Response, error) {
	// The key is only in this closure, so no field can be printed.
	return func(ctx context.Context, name, token string, body []byte) (*http.Response, error) {
		u, err := url.Parse(base)
		if err != nil {
			return nil, err
		}
		if !strings.Contains(name, "/") {
			name = "models/" + name
		}
		u = u.JoinPath(version, name+":streamGenerateContent")
		// Without it, the provider sends a JSON list instead of events.
		u.RawQuery = "alt=sse"
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		} else {
			req.Header.Set("x-goog-api-key", key)
		}
		return client.Do(req)
	}
}

// where names what sets the provider's address, for messages.
func (m *Model) where() string {
	if m.signIn != nil {
		return "the base URL"
	}
	return envBaseURL
}

// Generate implements [model.Model]. It calls the model once and streams its reply.
func (m *Model) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	// A call whose context has ended must not reach the provider.
	if err := ctx.Err(); err != nil {
		return nil, m.endpoint.Cancelled(err)
	}
	if m.unusable != nil {
		return nil, m.unusable
	}
	asked, err := m.request(req)
	var body []byte
	if err == nil {
		body, err = json.Marshal(asked)
	}
	if err != nil {
		return nil, m.endpoint.Faultf(agent.FaultBadRequest, 0, 0, "%s was not called: %v", m.name, err)
	}
	var token string
	if m.signIn != nil {
		// A copy: the token, and the endpoint that hides it, are for this call alone.
		once := *m
		if once.endpoint, token, err = m.endpoint.SignedIn(ctx, m.signIn); err != nil {
			return nil, err
		}
		m = &once
	}
	res, err := m.send(ctx, req.Model, token, body)
	if res != nil {
		defer res.Body.Close()
	}
	switch {
	// First: a cancelled call also has an error.
	case ctx.Err() != nil:
		return nil, m.endpoint.Cancelled(ctx.Err())
	case err != nil:
		return nil, m.endpoint.Unreachable(err, "that the worker can reach it, and "+m.where())
	case res.StatusCode != http.StatusOK:
		return nil, m.refused(res)
	}
	reply, err := m.read(ctx, res, emit)
	if reply != nil {
		reply.ProviderModel = m.name + "/" + req.Model
	}
	return reply, err
}
