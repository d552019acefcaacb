package vertex

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

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

	// CacheTTL is how long what Claude's requests write to the cache is kept: five minutes,
	// which zero means too, or an hour, which costs more.
	CacheTTL time.Duration

	// Extra is what requests carry besides, before they are put into Vertex's form.
	Extra model.Extra `json:"-"`
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

// gemini and claude are the options of the adapters that are asked in the envelope.
func (o *Options) gemini() *gemini.Options {
	return &gemini.Options{Name: o.name(), BaseURL: o.baseURL(), Extra: o.Extra}
}

func (o *Options) claude() *anthropic.Options {
	return &anthropic.Options{Name: o.name() + claudeSuffix, BaseURL: o.baseURL(), CacheTTL: o.CacheTTL, Extra: o.Extra}
}

// claudeSuffix keeps Claude's thoughts apart: neither family can read the other's, and they
// go by the provider's name.
const claudeSuffix = "-claude"

// Check refuses invalid options, with [agent.CodeInvalidInput] and the path of the
// field under models of an agents file. New takes them, and the first call fails.
func (o *Options) Check() error {
	if err := o.gemini().Check(); err != nil {
		return err
	}
	return o.claude().Check()
}

// String shows the options.
func (o Options) String() string {
	return fmt.Sprintf("vertex.Options{Name: %q, Project: %q, Location: %q, BaseURL: %q}", o.name(), o.project(), o.location(), model.RedactedURL(o.baseURL()))
}

// GoString shows the options.
func (o Options) GoString() string { return o.String() }

// Model is all models of a project in one location. It is safe for concurrent use.
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
	toGoogle, toAnthropic := o.gemini(), o.claude()
	toGoogle.SignIn, toGoogle.HTTPClient = a.token, in.around(o.HTTPClient, toGemini)
	toAnthropic.SignIn, toAnthropic.HTTPClient = a.token, in.around(o.HTTPClient, toClaude)
	return &Model{
		gemini: gemini.New(toGoogle), claude: anthropic.New(toAnthropic),
		account: a, location: o.location(),
	}
}

// nearerCosts is what Claude costs in one region or geography, in percent of its price
// everywhere.
const nearerCosts = 110

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
		info.Price = model.PricePercent(info.Price, nearerCosts)
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
