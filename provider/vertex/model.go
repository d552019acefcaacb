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

// Options says how to reach Vertex. With the zero value or nil, everything comes from the
// environment.
type Options struct {
	// Project is the id of the project that pays. Empty means $GOOGLE_CLOUD_PROJECT or,
	// without it, the credentials' project.
	Project string

	// Location is where the models are, "europe-west1", or "us", "eu", "global". Empty
	// means $GOOGLE_CLOUD_LOCATION, or else "global".
	Location string

	// Tokens returns the tokens. Nil means Application Default Credentials, which the
	// first call looks for.
	Tokens oauth2.TokenSource `json:"-"`

	// BaseURL is the API's address without its version. Empty means the location's own.
	BaseURL string

	// HTTPClient sends the requests to models. Nil means a new client without a timeout,
	// because the context of a call has one.
	HTTPClient *http.Client `json:"-"`

	// Name is Vertex's name in full names of models, the part before the first slash.
	// Empty means "vertex".
	Name string

	// CacheTTL is how long Claude's cached tokens are kept: five minutes or an hour,
	// which costs more. Zero means five minutes.
	CacheTTL time.Duration

	// Citations lets Claude cite PDFs and files of text, which cost a few more tokens for it.
	// Requests with a schema for the answer are without.
	Citations bool

	// Extra is added to every request, before that is translated for Vertex.
	Extra model.Extra `json:"-"`
}

func (o *Options) name() string    { return cmp.Or(o.Name, defaultName) }
func (o *Options) project() string { return cmp.Or(o.Project, os.Getenv(envProject)) }
func (o *Options) location() string {
	return cmp.Or(o.Location, os.Getenv(envLocation), defaultLocation)
}
func (o *Options) baseURL() string { return cmp.Or(o.BaseURL, located(o.location())) }

// located returns the address of a location's models.
func located(location string) string {
	switch location {
	case global:
		return "https://aiplatform.googleapis.com"
	case "us", "eu":
		return "https://aiplatform." + location + ".rep.googleapis.com"
	}
	return "https://" + location + "-aiplatform.googleapis.com"
}

// gemini and claude return the options of the adapters behind this one.
func (o *Options) gemini() *gemini.Options {
	return &gemini.Options{Name: o.name(), BaseURL: o.baseURL(), Extra: o.Extra}
}

func (o *Options) claude() *anthropic.Options {
	return &anthropic.Options{Name: o.name() + claudeSuffix, BaseURL: o.baseURL(), CacheTTL: o.CacheTTL, Citations: o.Citations, Extra: o.Extra}
}

// claudeSuffix keeps Claude's thinking apart from Gemini's. Neither can read the other's,
// and thinking is sent back by the provider's name.
const claudeSuffix = "-claude"

// Check returns an [agent.CodeInvalidInput] error with the field's path in an agents file
// if an option is invalid. New accepts such options, and the first call fails.
func (o *Options) Check() error {
	if err := o.gemini().Check(); err != nil {
		return err
	}
	return o.claude().Check()
}

// String returns the options without secrets.
func (o Options) String() string {
	return fmt.Sprintf("vertex.Options{Name: %q, Project: %q, Location: %q, BaseURL: %q}", o.name(), o.project(), o.location(), model.RedactedURL(o.baseURL()))
}

// GoString returns the same as String.
func (o Options) GoString() string { return o.String() }

// Model calls all models of a project in one location. It is safe for concurrent use.
// Make one with [New].
type Model struct {
	gemini   *gemini.Model
	claude   *anthropic.Model
	account  *account
	location string
}

var _ model.Model = (*Model)(nil)

// New returns a Model; o may be nil. It sends nothing. If something is missing, the first
// call fails: a worker that never calls Vertex needs no project and no account.
func New(o *Options) *Model {
	if o == nil {
		o = &Options{}
	}
	a := &account{name: o.name(), project: o.project(), tokens: o.Tokens}
	in := translator{location: o.location(), project: a.projectID}
	toGoogle, toAnthropic := o.gemini(), o.claude()
	toGoogle.SignIn, toGoogle.HTTPClient = a.token, in.around(o.HTTPClient, toGemini)
	toAnthropic.SignIn, toAnthropic.HTTPClient = a.token, in.around(o.HTTPClient, toClaude)
	return &Model{
		gemini: gemini.New(toGoogle), claude: anthropic.New(toAnthropic),
		account: a, location: o.location(),
	}
}

// nearerCosts is the price of Claude in one region or geography, in percent of the global
// price.
const nearerCosts = 110

// Info returns what is known of a model; the zero value if nothing is. Only Claude's
// prices are known: they are Anthropic's own.
func (m *Model) Info(name string) model.Info {
	if !strings.HasPrefix(name, claudes) {
		info := m.gemini.Info(name)
		// Vertex has other prices than the Gemini API.
		info.Price = agent.Price{}
		return info
	}
	info := m.claude.Info(name)
	if m.location != global {
		info.Price = model.PricePercent(info.Price, nearerCosts)
	}
	return info
}

// Check returns why no model can be called: there is no project, or signing in fails. It
// fetches a token like a call, and calls no model.
func (m *Model) Check(ctx context.Context) error {
	_, err := m.account.token(ctx)
	return err
}

// Generate implements [model.Model]. It calls the model once and streams its reply.
func (m *Model) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	if strings.HasPrefix(req.Model, claudes) {
		return m.claude.Generate(ctx, req, emit)
	}
	return m.gemini.Generate(ctx, req, emit)
}
