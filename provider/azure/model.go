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

// Options say how to reach a resource. The zero value, and nil, take everything from the
// environment.
type Options struct {
	// Endpoint is the resource: "https://NAME.openai.azure.com" or
	// "https://NAME.services.ai.azure.com". Empty means $AZURE_OPENAI_ENDPOINT.
	Endpoint string

	// APIVersion is a version of the API with a date, "2024-10-21", which has an address
	// for each deployment; or "preview", or "v1". Empty means $OPENAI_API_VERSION, or else
	// the API without versions.
	APIVersion string

	// APIKey is the resource's key. Empty means $AZURE_OPENAI_API_KEY, read by New, unless
	// Credential is set; if that is empty too, the worker signs in to Entra.
	APIKey string `json:"-"`

	// Credential gives the tokens. Nil means the SDK's default chain, which is set up by
	// the first call.
	Credential azcore.TokenCredential `json:"-"`

	// Scope is what a token is asked for. Empty means Azure's AI services, in the cloud of
	// the endpoint.
	Scope string

	// HTTPClient makes the requests to models. Nil means a client of our own, which has no
	// timeout: the context of a call has one.
	HTTPClient *http.Client `json:"-"`

	// Name is what the resource is called in full names of models, the part before the
	// first slash. Empty means "azure".
	Name string

	// API is the form to ask in. Empty means openai.Responses, and openai.ChatCompletions
	// for versions with a date. Models of other makers than OpenAI want the latter.
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

// inner are the options of the adapter that is asked in the envelope.
func (o *Options) inner() *openai.Options {
	base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(o.endpoint(), "/"), "/openai/v1"), "/")
	return &openai.Options{
		Name: o.name(), BaseURL: base + "/openai/v1", APIKey: o.apiKey(), Own: true, API: o.api(), MaxTokensField: o.MaxTokensField,
		NoStreamOptions: o.NoStreamOptions, KeepCallIDs: o.KeepCallIDs, ToolChoice: o.ToolChoice, ServiceTier: o.ServiceTier, Extra: o.Extra,
	}
}

// Check refuses invalid options, with [agent.CodeInvalidInput] and the path of the
// field under models of an agents file. New takes them, and the first call fails.
func (o *Options) Check() error { return o.inner().Check() }

// String shows the options without the key.
func (o Options) String() string {
	return fmt.Sprintf("azure.Options{Name: %q, Endpoint: %q, APIVersion: %q}", o.name(), model.RedactedURL(o.endpoint()), o.version())
}

// GoString shows the options without the key.
func (o Options) GoString() string { return o.String() }

// Model is all deployments of a resource. It is safe for concurrent use.
type Model struct {
	*openai.Model
	entra *entra // nil where a key is sent
	// unusable is why no call can be made; nil if one can.
	unusable error
}

var _ model.Model = (*Model)(nil)

// New makes a Model. It makes no request, and what is missing is told by the first call:
// a worker that never asks this resource needs no key and no identity.
func New(o *Options) *Model {
	if o == nil {
		o = &Options{}
	}
	m := &Model{}
	key, inner := o.apiKey(), o.inner()
	client := model.HTTPClient(o.HTTPClient)
	client.Transport = &envelope{version: o.version(), keyed: key != "", next: client.Transport}
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

// Info tells what is known of the model that a deployment is named after; its price is
// not known, since it differs by kind and place of the deployment.
func (m *Model) Info(name string) model.Info {
	info := m.Model.Info(name)
	info.Price = agent.Price{}
	return info
}

// Check reports why no deployment could be asked: there is no endpoint, or nobody can sign
// in. It fetches a token as a call would, and asks no model.
func (m *Model) Check(ctx context.Context) error {
	if m.unusable != nil || m.entra == nil {
		return m.unusable
	}
	_, err := m.entra.token(ctx)
	return err
}

// Generate asks once for a reply and streams it.
func (m *Model) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	if m.unusable != nil {
		return nil, m.unusable
	}
	return m.Model.Generate(ctx, req, emit)
}
