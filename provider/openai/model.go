package openai

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/filebody"
	"github.com/fermata-agents/fermata/model"
)

const (
	defaultName    = "openai"
	defaultBaseURL = "https://api.openai.com/v1"

	envKey     = "OPENAI_API_KEY"
	envBaseURL = "OPENAI_BASE_URL"
)

// Model calls all models of one server. It is safe for concurrent use. Make one with
// [New].
type Model struct {
	name      string
	endpoint  *model.Endpoint
	own       bool // the models are OpenAI's own
	keyed     bool // there is a key
	signIn    model.SignIn
	auth      []option.RequestOption // of one request, where somebody signed in
	api       API
	with      Options // how models are asked; no key, no address
	chat      sdk.ChatCompletionService
	responses responses.ResponseService
	// unusable is why every call fails; nil if calls can be made.
	unusable error
}

var _ model.Model = (*Model)(nil)

// New returns a Model; o may be nil. It sends nothing. If something is missing, such as
// the key, the first call fails: a worker that never calls this server does not need its
// key.
func New(o *Options) *Model {
	if o == nil {
		o = &Options{}
	}
	// The address decides whether the environment's key may be sent.
	base := o.baseURL()
	key := o.apiKey(isOwn(base))
	own := o.Own || isOwn(base)
	// No retries of the SDK: the runtime retries, and counts each attempt.
	opts := []option.RequestOption{option.WithBaseURL(base), option.WithHTTPClient(o.Extra.Client(o.HTTPClient)), option.WithMaxRetries(0)}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	m := &Model{
		name: o.name(), endpoint: model.NewEndpoint(o.name(), base, key).Hiding(o.Extra.Secrets...), own: own, keyed: key != "",
		api: o.api(own), signIn: o.SignIn, with: o.ways(),
		chat: sdk.NewChatCompletionService(opts...), responses: responses.NewResponseService(opts...),
	}
	m.unusable = m.endpoint.WrongURL("https://host/v1", envBaseURL)
	switch err := o.Check(); {
	case m.unusable != nil:
	case err != nil:
		m.unusable = m.endpoint.Faultf(agent.FaultBadRequest, 0, 0, "%s: %v", m.name, err)
	// Other servers may need no key.
	case isOwn(base) && key == "" && o.SignIn == nil:
		m.unusable = m.endpoint.NoKey(envKey)
	}
	return m
}

// azures are the domains of Azure's resources.
var azures = []string{".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com", ".openai.azure.us", ".cognitiveservices.azure.us"}

// isOwn reports whether a base URL is OpenAI's or Azure's.
func isOwn(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host := u.Hostname()
	// With a dot, so that a host such as evilapi.openai.com does not match.
	return strings.HasSuffix("."+host, ".api.openai.com") ||
		slices.ContainsFunc(azures, func(domain string) bool { return strings.HasSuffix(host, domain) })
}

// Generate implements [model.Model]. It calls the model once and streams its reply.
func (m *Model) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	// A call whose context has ended must not reach the server.
	if err := ctx.Err(); err != nil {
		return nil, m.endpoint.Cancelled(err)
	}
	if m.unusable != nil {
		return nil, m.unusable
	}
	once := *m // a copy: the tools of the provider, the token, and the endpoint that hides it are for this call alone
	once.with.ServerTools = req.Serves(m.with.ServerTools)
	// Each request asks for the token, since it expires.
	if m.signIn != nil {
		endpoint, token, err := m.endpoint.SignedIn(ctx, m.signIn)
		if err != nil {
			return nil, err
		}
		once.endpoint, once.auth = endpoint, []option.RequestOption{option.WithHeader("Authorization", "Bearer "+token)}
	}
	m = &once
	res, into, err := m.send(ctx, req, emit)
	if res != nil && res.Body != nil {
		defer res.Body.Close()
	}
	// The order matters: a cancelled call also has an error.
	switch {
	case ctx.Err() != nil:
		return nil, m.endpoint.Cancelled(ctx.Err())
	case into == nil:
		return nil, m.endpoint.Faultf(agent.FaultBadRequest, 0, 0, "%s was not called: %v", m.name, err)
	case res != nil && res.StatusCode != http.StatusOK:
		return nil, m.refused(res)
	case err != nil:
		return nil, m.endpoint.Unreachable(err, "that it runs, that the worker can reach it, and the base URL")
	}
	reply, err := m.read(ctx, res, into, emit)
	if reply != nil {
		reply.ProviderModel = m.name + "/" + req.Model
	}
	return reply, err
}

// send sends the request in the server's API. into is nil if the request can't be
// expressed in it.
func (m *Model) send(ctx context.Context, req *model.Request, emit func(model.Delta)) (res *http.Response, into assembler, err error) {
	// The SDK must not read the body, because its own types lose fields.
	files := filebody.New(req.Files)
	streamed := append([]option.RequestOption{option.WithJSONSet("stream", true), option.WithResponseBodyInto(&res), option.WithMiddleware(files.Send)}, m.auth...)
	if m.api == Responses {
		params, err := m.responseParams(req, files)
		if err != nil {
			return nil, nil, err
		}
		_, err = m.responses.New(ctx, params, streamed...)
		return res, &responseReply{emit: emit, received: map[spot]*words{}}, err
	}
	params, err := m.chatParams(req, files)
	if err != nil {
		return nil, nil, err
	}
	_, err = m.chat.New(ctx, params, streamed...)
	return res, &chatReply{emit: emit}, err
}
