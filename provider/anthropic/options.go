package anthropic

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Options says how to reach the provider. With the zero value or nil, everything comes
// from the environment.
type Options struct {
	// APIKey is the API key. Empty means $ANTHROPIC_API_KEY, which New reads.
	APIKey string `json:"-"`

	// SignIn returns the token of each request, instead of a key. Nil means the key.
	SignIn model.SignIn `json:"-"`

	// BaseURL is the API's address without its version: "https://gateway.example". Empty
	// means $ANTHROPIC_BASE_URL or, without it, Anthropic's own.
	BaseURL string

	// HTTPClient sends the requests. Nil means a new client without a timeout, because
	// the context of a call has one. If the client has no policy for redirects, it
	// follows none: else another host could get the key.
	HTTPClient *http.Client `json:"-"`

	// Name is the provider's name in full names of models, the part before the slash.
	// Empty means "anthropic".
	Name string

	// CacheTTL is how long the provider keeps cached tokens: five minutes or an hour,
	// which costs more. Zero means five minutes.
	CacheTTL time.Duration

	// ServiceTier is auto or standard_only. Auto, the provider's default, uses capacity
	// that was paid for in advance. Prices are the same.
	ServiceTier string

	// ServerTools are tools that the provider runs itself. Their steps are stored, and
	// sent back only to this provider.
	ServerTools []model.ServerTool

	// Citations lets the model cite PDFs and files of text, which cost a few more tokens for
	// it. Requests with a schema for the answer are without: the provider refuses both together.
	Citations bool

	// Extra is added to every request.
	Extra model.Extra `json:"-"`
}

func (o *Options) apiKey() string {
	// A sign-in replaces the environment's key, which must not be sent beside it.
	if o.APIKey != "" || o.SignIn != nil {
		return o.APIKey
	}
	return strings.TrimSpace(os.Getenv(envKey))
}

func (o *Options) baseURL() string {
	return cmp.Or(o.BaseURL, os.Getenv(envBaseURL), defaultBaseURL)
}

func (o *Options) name() string { return cmp.Or(o.Name, defaultName) }

// String returns the options without the key.
func (o Options) String() string {
	return fmt.Sprintf("anthropic.Options{Name: %q, BaseURL: %q}", o.name(), model.RedactedURL(o.baseURL()))
}

// GoString returns the same as String.
func (o Options) GoString() string { return o.String() }

// own are the fields of a request's body that the adapter writes itself.
var own = []string{
	"anthropic_version", "cache_control", "max_tokens", "messages", "model", "output_config.effort", "output_config.format", "service_tier", "stream", "system",
	"temperature", "thinking", "tool_choice", "tools",
}

// Check returns an [agent.CodeInvalidInput] error with the field's path in an agents file
// if an option is invalid. New accepts such options, and the first call fails.
func (o *Options) Check() error {
	if err := model.CheckCacheTTL(o.CacheTTL); err != nil {
		return err
	}
	if !slices.Contains([]string{"", tierAuto, tierStandard}, o.ServiceTier) {
		return agent.Errorf(agent.CodeInvalidInput, "service_tier must be %s or %s, not %q", tierAuto, tierStandard, o.ServiceTier).WithPath("service_tier")
	}
	if err := model.CheckServerTools(o.ServerTools); err != nil {
		return err
	}
	return o.Extra.Check(own...)
}

const (
	tierAuto     = "auto"
	tierStandard = "standard_only"
)
