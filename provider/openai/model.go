package openai

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

const (
	defaultName    = "openai"
	defaultBaseURL = "https://api.openai.com/v1"

	envKey     = "OPENAI_API_KEY"
	envBaseURL = "OPENAI_BASE_URL"
)

// API is a form in which models are asked.
type API string

// The forms.
const (
	ChatCompletions API = "chat_completions"
	Responses       API = "responses"
)

// Options say how to reach a server. The zero value, and nil, take everything
// from the environment.
type Options struct {
	// APIKey is the key that pays. Empty means $OPENAI_API_KEY, read by New,
	// unless BaseURL is set to a server that is not OpenAI's: no other server is
	// told OpenAI's key, and most need none.
	APIKey string `json:"-"`

	// SignIn gives the token of each request, instead of a key. Nil means the key.
	SignIn model.SignIn `json:"-"`

	// Own says that models are OpenAI's own though the server is neither OpenAI's nor
	// Azure's: a gateway to them, say. It is told what only they understand.
	Own bool

	// BaseURL is where the API is, with its version: "http://localhost:11434/v1".
	// Empty means $OPENAI_BASE_URL, or else OpenAI's own.
	BaseURL string

	// HTTPClient makes the requests. Nil means a client of our own, which has no
	// timeout: the context of a call has one. A client that has no policy for
	// redirects follows none, so that no other host is told the key.
	HTTPClient *http.Client `json:"-"`

	// Name is what the server is called in full names of models, the part before
	// the first slash. Empty means "openai".
	Name string

	// API is the form to ask in. Empty means Responses for OpenAI's own servers
	// and Azure's, ChatCompletions for all others.
	API API

	// KeepThinking sends the thinking of this server's models back to it, as
	// reasoning_content. DeepSeek and Kimi demand it of a model that thinks and
	// calls tools; others ignore or refuse it. It is for ChatCompletions only.
	KeepThinking bool

	// Infos tells what is known of models, by the server's name for them. It
	// comes before the table of OpenAI's own models.
	Infos map[string]model.Info
}

func (o *Options) baseURL() string {
	return cmp.Or(o.BaseURL, os.Getenv(envBaseURL), defaultBaseURL)
}

func (o *Options) apiKey(own bool) string {
	switch {
	case o.APIKey != "" || o.SignIn != nil:
		return o.APIKey
	case o.BaseURL != "" && !own:
		return ""
	}
	return strings.TrimSpace(os.Getenv(envKey))
}

func (o *Options) name() string { return cmp.Or(o.Name, defaultName) }

func (o *Options) api(own bool) API {
	switch {
	case o.API != "":
		return o.API
	case own:
		return Responses
	}
	return ChatCompletions
}

// String shows the options without the key.
func (o Options) String() string {
	return fmt.Sprintf("openai.Options{Name: %q, BaseURL: %q, API: %q}", o.name(), model.RedactedURL(o.baseURL()), o.API)
}

// GoString shows the options without the key.
func (o Options) GoString() string { return o.String() }

// Model is all models of a server. It may be used from many goroutines.
type Model struct {
	name         string
	endpoint     *model.Endpoint
	own          bool // the models are OpenAI's own
	keyed        bool // there is a key
	signIn       model.SignIn
	auth         []option.RequestOption // of one request, where somebody signed in
	api          API
	keepThinking bool
	infos        map[string]model.Info
	chat         sdk.ChatCompletionService
	responses    responses.ResponseService
	// unusable is why no call can be made; nil where one can.
	unusable error
}

var _ model.Model = (*Model)(nil)

// New makes a Model. It makes no request, and what is missing is told by the
// first call: a worker that never asks this server needs no key for it.
func New(o *Options) *Model {
	if o == nil {
		o = &Options{}
	}
	base := o.baseURL()
	key := o.apiKey(isOwn(base))
	own := o.Own || isOwn(base)
	opts := []option.RequestOption{option.WithBaseURL(base), option.WithHTTPClient(model.HTTPClient(o.HTTPClient)), option.WithMaxRetries(0)}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	m := &Model{
		name: o.name(), endpoint: model.NewEndpoint(o.name(), base, key), own: own, keyed: key != "", api: o.api(own),
		signIn: o.SignIn, keepThinking: o.KeepThinking, infos: o.Infos,
		chat: sdk.NewChatCompletionService(opts...), responses: responses.NewResponseService(opts...),
	}
	m.unusable = m.endpoint.WrongURL("https://host/v1", envBaseURL)
	switch {
	case m.unusable != nil:
	case m.api != ChatCompletions && m.api != Responses:
		m.unusable = m.endpoint.Faultf(agent.FaultBadRequest, 0, 0,
			"%s: the API must be %s or %s, not %q", m.name, ChatCompletions, Responses, m.api)
	case isOwn(base) && key == "" && o.SignIn == nil:
		m.unusable = m.endpoint.NoKey(envKey)
	}
	return m
}

// azures are the domains of Azure's resources.
var azures = []string{".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com", ".openai.azure.us", ".cognitiveservices.azure.us"}

// isOwn tells whether a base URL is of OpenAI's servers or Azure's.
func isOwn(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return strings.HasSuffix("."+host, ".api.openai.com") ||
		slices.ContainsFunc(azures, func(domain string) bool { return strings.HasSuffix(host, domain) })
}

// Generate asks once for a reply and streams it.
func (m *Model) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, m.endpoint.Cancelled(err)
	}
	if m.unusable != nil {
		return nil, m.unusable
	}
	if m.signIn != nil {
		endpoint, token, err := m.endpoint.SignedIn(ctx, m.signIn)
		if err != nil {
			return nil, err
		}
		once := *m
		once.endpoint, once.auth = endpoint, []option.RequestOption{option.WithHeader("Authorization", "Bearer "+token)}
		m = &once
	}
	res, into, err := m.send(ctx, req, emit)
	if res != nil && res.Body != nil {
		defer res.Body.Close()
	}
	switch {
	case ctx.Err() != nil:
		return nil, m.endpoint.Cancelled(ctx.Err())
	case into == nil:
		return nil, m.endpoint.Faultf(agent.FaultBadRequest, 0, 0, "%s was not asked: %v", m.name, err)
	case res != nil && res.StatusCode != http.StatusOK:
		return nil, m.refused(res)
	case err != nil:
		return nil, m.endpoint.Unreachable(err, "that it runs, that the worker can reach it, and the base URL")
	}
	reply, err := m.read(ctx, res, into, emit)
	if reply != nil {
		reply.Maker = m.name + "/" + req.Model
	}
	return reply, err
}

// send asks in the form that the server is asked in. What is returned for the
// reply is nil where the request can't be put in that form.
func (m *Model) send(ctx context.Context, req *model.Request, emit func(model.Delta)) (res *http.Response, into assembler, err error) {
	streamed := append([]option.RequestOption{option.WithJSONSet("stream", true), option.WithResponseBodyInto(&res)}, m.auth...)
	if m.api == Responses {
		params, err := m.responseParams(req)
		if err != nil {
			return nil, nil, err
		}
		_, err = m.responses.New(ctx, params, streamed...)
		return res, &responseReply{emit: emit, heard: map[spot]*words{}}, err
	}
	params, err := m.chatParams(req)
	if err != nil {
		return nil, nil, err
	}
	_, err = m.chat.New(ctx, params, streamed...)
	return res, &chatReply{emit: emit}, err
}
