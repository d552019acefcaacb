package azure

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
)

const (
	defaultName = "azure"

	envKey      = "AZURE_OPENAI_API_KEY"
	envEndpoint = "AZURE_OPENAI_ENDPOINT"
	envVersion  = "OPENAI_API_VERSION"
)

// Options says how to reach a resource. With the zero value or nil, everything comes from
// the environment.
type Options struct {
	// Endpoint is the resource's address: "https://NAME.openai.azure.com" or
	// "https://NAME.services.ai.azure.com". Empty means $AZURE_OPENAI_ENDPOINT.
	Endpoint string

	// APIVersion is a dated version of the API, "2024-10-21", which has an address for
	// each deployment; or "preview" or "v1". Empty means $OPENAI_API_VERSION or, without
	// it, the API without versions.
	APIVersion string

	// APIKey is the resource's key. Empty means $AZURE_OPENAI_API_KEY, which New reads,
	// unless Credential is set. If that is empty too, the worker signs in to Entra.
	APIKey string `json:"-"`

	// Credential returns the tokens. Nil means the SDK's default chain, which the first
	// call sets up.
	Credential azcore.TokenCredential `json:"-"`

	// Scope is the scope of tokens. Empty means Azure's AI services, in the endpoint's
	// cloud.
	Scope string

	// HTTPClient sends the requests to models. Nil means a new client without a timeout,
	// because the context of a call has one.
	HTTPClient *http.Client `json:"-"`

	// Name is the resource's name in full names of models, the part before the first
	// slash. Empty means "azure".
	Name string

	// API is the API to use. Empty means openai.Responses, and openai.ChatCompletions for
	// dated versions. Models of other makers than OpenAI need the latter.
	API openai.API

	// MaxTokensField, NoStreamOptions, KeepCallIDs, ToolChoice, ServiceTier and Extra are
	// those of openai.Options.
	MaxTokensField  string
	NoStreamOptions bool
	KeepCallIDs     bool
	ToolChoice      model.ToolChoice
	ServiceTier     string
	Extra           model.Extra `json:"-"`
}

func (o *Options) apiKey() string {
	if o.APIKey != "" || o.Credential != nil {
		return o.APIKey
	}
	return strings.TrimSpace(os.Getenv(envKey))
}

func (o *Options) name() string     { return cmp.Or(o.Name, defaultName) }
func (o *Options) endpoint() string { return cmp.Or(o.Endpoint, os.Getenv(envEndpoint)) }
func (o *Options) version() string  { return cmp.Or(o.APIVersion, os.Getenv(envVersion)) }

func (o *Options) api() openai.API {
	switch {
	case o.API != "":
		return o.API
	case dated(o.version()):
		return openai.ChatCompletions
	}
	return openai.Responses
}

// inner returns the options of the adapter behind this one.
func (o *Options) inner() *openai.Options {
	// Users copy the address with or without the API's path.
	base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(o.endpoint(), "/"), "/openai/v1"), "/")
	return &openai.Options{
		Name: o.name(), BaseURL: base + "/openai/v1", APIKey: o.apiKey(), Own: true, API: o.api(), MaxTokensField: o.MaxTokensField,
		NoStreamOptions: o.NoStreamOptions, KeepCallIDs: o.KeepCallIDs, ToolChoice: o.ToolChoice, ServiceTier: o.ServiceTier, Extra: o.Extra,
	}
}

// Check returns an [agent.CodeInvalidInput] error with the field's path in an agents file
// if an option is invalid. New accepts such options, and the first call fails.
func (o *Options) Check() error { return o.inner().Check() }

// String returns the options without the key.
func (o Options) String() string {
	return fmt.Sprintf("azure.Options{Name: %q, Endpoint: %q, APIVersion: %q}", o.name(), model.RedactedURL(o.endpoint()), o.version())
}

// GoString returns the same as String.
func (o Options) GoString() string { return o.String() }

// Model calls all deployments of a resource. It is safe for concurrent use. Make one with
// [New].
type Model struct {
	*openai.Model
	entra *entra // nil where a key is sent
	// unusable is why every call fails; nil if calls can be made.
	unusable error
}

var _ model.Model = (*Model)(nil)

// New returns a Model; o may be nil. It sends nothing. If something is missing, the first
// call fails: a worker that never calls this resource needs no key and no identity.
func New(o *Options) *Model {
	if o == nil {
		o = &Options{}
	}
	m := &Model{}
	key, inner := o.apiKey(), o.inner()
	client := model.HTTPClient(o.HTTPClient)
	// The key is recognised in the transport, because the adapter behind sends it as OpenAI does.
	client.Transport = &translator{version: o.version(), keyed: key != "", next: client.Transport}
	inner.HTTPClient = client
	if key == "" {
		m.entra = newEntra(o.name(), o.scope(), o.Credential)
		inner.SignIn = m.entra.token
	}
	m.Model = openai.New(inner)
	if o.endpoint() == "" {
		m.unusable = model.Fault(agent.FaultBadRequest, 0, 0, o.name()+": there is no endpoint; set "+envEndpoint+" in the worker's environment")
	}
	return m
}

// Info returns what is known of the model that a deployment is named after. Its price is
// unknown, because it depends on the kind and place of the deployment.
func (m *Model) Info(name string) model.Info {
	info := m.Model.Info(name)
	info.Price = agent.Price{}
	return info
}

// Check returns why no deployment can be called: there is no endpoint, or signing in
// fails. It fetches a token like a call, and calls no model.
func (m *Model) Check(ctx context.Context) error {
	if m.unusable != nil || m.entra == nil {
		return m.unusable
	}
	_, err := m.entra.token(ctx)
	return err
}

// Generate implements [model.Model]. It calls the model once and streams its reply.
func (m *Model) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	if m.unusable != nil {
		return nil, m.unusable
	}
	return m.Model.Generate(ctx, req, emit)
}
