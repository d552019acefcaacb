package anthropic

import (
	"context"
	"net/http"
	"slices"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/filebody"
	"github.com/fermata-agents/fermata/model"
)

const (
	defaultName    = "anthropic"
	defaultBaseURL = "https://api.anthropic.com"

	envKey     = "ANTHROPIC_API_KEY"
	envBaseURL = "ANTHROPIC_BASE_URL"
)

// Model calls all models of the provider. It is safe for concurrent use. Make one with
// [New].
type Model struct {
	name     string
	endpoint *model.Endpoint
	client   sdk.Client
	signIn   model.SignIn
	hour     bool // what is written to the cache lives for an hour
	tier     string
	serves   []model.ServerTool
	cites    bool // documents may be cited
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
	opts := []option.RequestOption{
		// Without the SDK's own retries: the runtime retries and counts each attempt.
		option.WithoutEnvironmentDefaults(), option.WithBaseURL(base), option.WithHTTPClient(o.Extra.Client(o.HTTPClient)), option.WithMaxRetries(0),
	}
	if o.SignIn == nil {
		opts = append(opts, option.WithAPIKey(key))
	}
	m := &Model{
		name: o.name(), endpoint: model.NewEndpoint(o.name(), base, key).Hiding(o.Extra.Secrets...), client: sdk.NewClient(opts...),
		signIn: o.SignIn, hour: o.CacheTTL == time.Hour, tier: o.ServiceTier, serves: slices.Clone(o.ServerTools), cites: o.Citations,
	}
	// Kept for the first call: a worker may never call this provider.
	m.unusable = m.endpoint.WrongURL("https://host", envBaseURL)
	switch err := o.Check(); {
	case m.unusable != nil:
	case err != nil:
		m.unusable = m.endpoint.Faultf(agent.FaultBadRequest, 0, 0, "%s: %v", m.name, err)
	case key == "" && o.SignIn == nil:
		m.unusable = m.endpoint.NoKey(envKey)
	}
	return m
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
	once := *m // a copy: the tools of the provider, and the endpoint that hides the token, are for this call alone
	once.serves = req.Serves(m.serves)
	m = &once
	// The provider refuses citations together with a schema.
	files := &shownFiles{Files: filebody.New(req.Files), bytes: req.Files, cites: m.cites && len(req.Output) == 0}
	params, err := m.params(req, files)
	if err != nil {
		return nil, m.endpoint.Faultf(agent.FaultBadRequest, 0, 0, "%s was not called: %v", m.name, err)
	}
	opts := []option.RequestOption{option.WithJSONSet("stream", true), option.WithMiddleware(files.Send)}
	if m.signIn != nil {
		endpoint, token, err := m.endpoint.SignedIn(ctx, m.signIn)
		if err != nil {
			return nil, err
		}
		// A copy: the token, and the endpoint that hides it, are for this call alone.
		once.endpoint = endpoint
		opts = append(opts, option.WithHeader("Authorization", "Bearer "+token))
	}
	var res *http.Response
	err = m.client.Post(ctx, "v1/messages", params, &res, opts...)
	if res != nil && res.Body != nil {
		defer res.Body.Close()
	}
	switch {
	// First: a cancelled call also has an error or a broken answer.
	case ctx.Err() != nil:
		return nil, m.endpoint.Cancelled(ctx.Err())
	case res != nil && res.StatusCode != http.StatusOK:
		return nil, m.refused(res)
	case err != nil:
		return nil, m.endpoint.Unreachable(err, "that the worker can reach it, and "+m.where())
	}
	reply, err := m.read(ctx, res, newReply(emit, files.documents(params.Messages)))
	if reply != nil {
		reply.ProviderModel = m.name + "/" + req.Model
	}
	return reply, err
}
