package vertex

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"golang.org/x/oauth2"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
	"github.com/fermata-agents/fermata/provider/gemini"
)

const (
	defaultName     = "vertex"
	defaultLocation = global

	global      = "global"
	claudes     = "claude-"
	envProject  = "GOOGLE_CLOUD_PROJECT"
	envLocation = "GOOGLE_CLOUD_LOCATION"
)

// Options say how to reach Vertex. The zero value, and nil, take everything from the
// environment.
type Options struct {
	// Project is the id of the project that pays. Empty means $GOOGLE_CLOUD_PROJECT, or
	// else that of the credentials.
	Project string

	// Location is where the models are, "europe-west1", or "us", "eu", "global". Empty
	// means $GOOGLE_CLOUD_LOCATION, or else "global".
	Location string

	// Tokens give the tokens. Nil means Application Default Credentials, which are looked
	// for by the first call.
	Tokens oauth2.TokenSource `json:"-"`

	// BaseURL is where the API is, without its version. Empty means the location's own.
	BaseURL string

	// HTTPClient makes the requests to models. Nil means a client of our own, which has no
	// timeout: the context of a call has one.
	HTTPClient *http.Client `json:"-"`

	// Name is what Vertex is called in full names of models, the part before the first
	// slash. Empty means "vertex".
	Name string
}

func (o *Options) name() string    { return cmp.Or(o.Name, defaultName) }
func (o *Options) project() string { return cmp.Or(o.Project, os.Getenv(envProject)) }
func (o *Options) location() string {
	return cmp.Or(o.Location, os.Getenv(envLocation), defaultLocation)
}
func (o *Options) baseURL() string { return cmp.Or(o.BaseURL, located(o.location())) }

// located is where a location's models are asked.
func located(location string) string {
	switch location {
	case global:
		return "https://aiplatform.googleapis.com"
	case "us", "eu":
		return "https://aiplatform." + location + ".rep.googleapis.com"
	}
	return "https://" + location + "-aiplatform.googleapis.com"
}

// String shows the options.
func (o Options) String() string {
	return fmt.Sprintf("vertex.Options{Name: %q, Project: %q, Location: %q, BaseURL: %q}", o.name(), o.project(), o.location(), model.RedactedURL(o.baseURL()))
}

// GoString shows the options.
func (o Options) GoString() string { return o.String() }

// Model is all models of a project in one location. It may be used from many goroutines.
type Model struct {
	gemini   *gemini.Model
	claude   *anthropic.Model
	account  *account
	location string
}

var _ model.Model = (*Model)(nil)

// New makes a Model. It makes no request, and what is missing is told by the first call:
// a worker that never asks Vertex needs no project and no account.
func New(o *Options) *Model {
	if o == nil {
		o = &Options{}
	}
	a := &account{name: o.name(), project: o.project(), tokens: o.Tokens}
	in := envelope{location: o.location(), project: a.projectID}
	return &Model{
		gemini: gemini.New(&gemini.Options{Name: o.name(), BaseURL: o.baseURL(), SignIn: a.token, HTTPClient: in.around(o.HTTPClient, toGemini)}),
		// Neither family can read the other's thoughts: they go by the provider's name.
		claude:  anthropic.New(&anthropic.Options{Name: o.name() + "-claude", BaseURL: o.baseURL(), SignIn: a.token, HTTPClient: in.around(o.HTTPClient, toClaude)}),
		account: a, location: o.location(),
	}
}

// nearerCosts is by how much Claude costs more in one region or geography than
// everywhere, in percent.
const nearerCosts = 10

// Info tells what is known of a model; its zero value if nothing is. Prices are known of
// Claude: they are Anthropic's own.
func (m *Model) Info(name string) model.Info {
	if !strings.HasPrefix(name, claudes) {
		info := m.gemini.Info(name)
		info.Price = agent.Price{}
		return info
	}
	info := m.claude.Info(name)
	if m.location != global {
		p := &info.Price
		for _, usd := range []*agent.USD{&p.Input, &p.Output, &p.CacheRead, &p.CacheWrite} {
			*usd += *usd * nearerCosts / 100
		}
	}
	return info
}

// Check reports why no model could be asked: there is no project, or nobody can sign in.
// It fetches a token as a call would, and asks no model.
func (m *Model) Check(ctx context.Context) error {
	_, err := m.account.token(ctx)
	return err
}

// Generate asks once for a reply and streams it.
func (m *Model) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	if strings.HasPrefix(req.Model, claudes) {
		return m.claude.Generate(ctx, req, emit)
	}
	return m.gemini.Generate(ctx, req, emit)
}
