package gemini

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

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

// Options say how to reach the provider. The zero value, and nil, take
// everything from the environment.
type Options struct {
	// APIKey is the key that pays. Empty means $GEMINI_API_KEY, or else
	// $GOOGLE_API_KEY, read by New.
	APIKey string `json:"-"`

	// SignIn gives the token of each request, instead of a key. Nil means the key.
	SignIn model.SignIn `json:"-"`

	// BaseURL is where the API is, without its version: "https://gateway.example".
	// Empty means $GOOGLE_GEMINI_BASE_URL, or else Google's own.
	BaseURL string

	// HTTPClient makes the requests. Nil means a client of our own, which has no
	// timeout: the context of a call has one. A client that has no policy for
	// redirects follows none, so that no other host is told the key.
	HTTPClient *http.Client `json:"-"`

	// Name is what the provider is called in full names of models, the part
	// before the slash. Empty means "gemini".
	Name string
}

func (o *Options) apiKey() string {
	if o.SignIn != nil {
		return o.APIKey
	}
	return cmp.Or(o.APIKey, strings.TrimSpace(os.Getenv(envKey)), strings.TrimSpace(os.Getenv(envOtherKey)))
}

func (o *Options) baseURL() string {
	return cmp.Or(o.BaseURL, os.Getenv(envBaseURL), defaultBaseURL)
}

func (o *Options) name() string { return cmp.Or(o.Name, defaultName) }

// String shows the options without the key.
func (o Options) String() string {
	return fmt.Sprintf("gemini.Options{Name: %q, BaseURL: %q}", o.name(), model.RedactedURL(o.baseURL()))
}

// GoString shows the options without the key.
func (o Options) GoString() string { return o.String() }

// Model is all models of the provider. It may be used from many goroutines.
type Model struct {
	name     string
	endpoint *model.Endpoint
	signIn   model.SignIn
	// send makes a request: it alone knows where, and with which key, if there is no token.
	send func(ctx context.Context, name, token string, body []byte) (*http.Response, error)
	// unusable is why no call can be made; nil where one can.
	unusable error
}

var _ model.Model = (*Model)(nil)

// New makes a Model. It makes no request, and what is missing is told by the
// first call: a worker that never asks this provider needs no key for it.
func New(o *Options) *Model {
	if o == nil {
		o = &Options{}
	}
	key, base := o.apiKey(), o.baseURL()
	m := &Model{name: o.name(), endpoint: model.NewEndpoint(o.name(), base, key), signIn: o.SignIn, send: sender(base, key, model.HTTPClient(o.HTTPClient))}
	m.unusable = m.endpoint.WrongURL("https://host", envBaseURL)
	if m.unusable == nil && key == "" && o.SignIn == nil {
		m.unusable = m.endpoint.NoKey(envKey + " or " + envOtherKey)
	}
	return m
}

// sender makes requests to base with a key. The name of a tuned model has its
// folder, "tunedModels/x"; that of all others stands for "models/x".
func sender(base, key string, client *http.Client) func(ctx context.Context, name, token string, body []byte) (*http.Response, error) {
	return func(ctx context.Context, name, token string, body []byte) (*http.Response, error) {
		u, err := url.Parse(base)
		if err != nil {
			return nil, err
		}
		if !strings.Contains(name, "/") {
			name = "models/" + name
		}
		u = u.JoinPath(version, name+":streamGenerateContent")
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

// where is what says where the provider is.
func (m *Model) where() string {
	if m.signIn != nil {
		return "the base URL"
	}
	return envBaseURL
}

// Generate asks once for a reply and streams it.
func (m *Model) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
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
		return nil, m.endpoint.Faultf(agent.FaultBadRequest, 0, 0, "%s was not asked: %v", m.name, err)
	}
	var token string
	if m.signIn != nil {
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
	case ctx.Err() != nil:
		return nil, m.endpoint.Cancelled(ctx.Err())
	case err != nil:
		return nil, m.endpoint.Unreachable(err, "that the worker can reach it, and "+m.where())
	case res.StatusCode != http.StatusOK:
		return nil, m.refused(res)
	}
	reply, err := m.read(ctx, res, emit)
	if reply != nil {
		reply.Maker = m.name + "/" + req.Model
	}
	return reply, err
}
