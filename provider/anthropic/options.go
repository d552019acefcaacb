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

// Options say how to reach the provider. The zero value, and nil, take
// everything from the environment.
type Options struct {
	// APIKey is the key that pays. Empty means $ANTHROPIC_API_KEY, read by New.
	APIKey string `json:"-"`

	// SignIn gives the token of each request, instead of a key. Nil means the key.
	SignIn model.SignIn `json:"-"`

	// BaseURL is where the API is, without its version: "https://gateway.example".
	// Empty means $ANTHROPIC_BASE_URL, or else Anthropic's own.
	BaseURL string

	// HTTPClient makes the requests. Nil means a client of our own, which has no
	// timeout: the context of a call has one. A client that has no policy for
	// redirects follows none, so that no other host is told the key.
	HTTPClient *http.Client `json:"-"`

	// Name is what the provider is called in full names of models, the part
	// before the slash. Empty means "anthropic".
	Name string

	// CacheTTL is how long the provider keeps what it writes to its cache: five minutes, which
	// zero means too, or an hour, which costs more.
	CacheTTL time.Duration

	// ServiceTier is auto, the provider's default, which uses capacity that was paid for
	// before, or standard_only. Prices are the same.
	ServiceTier string

	// ServerTools are tools that the provider carries out itself. What they did is kept, and
	// given back to this provider alone.
	ServerTools []model.ServerTool

	// Extra is what requests carry besides.
	Extra model.Extra `json:"-"`
}

func (o *Options) apiKey() string {
	if o.APIKey != "" || o.SignIn != nil {
		return o.APIKey
	}
	return strings.TrimSpace(os.Getenv(envKey))
}

func (o *Options) baseURL() string {
	return cmp.Or(o.BaseURL, os.Getenv(envBaseURL), defaultBaseURL)
}

func (o *Options) name() string { return cmp.Or(o.Name, defaultName) }

// String shows the options without the key.
func (o Options) String() string {
	return fmt.Sprintf("anthropic.Options{Name: %q, BaseURL: %q}", o.name(), model.RedactedURL(o.baseURL()))
}

// GoString shows the options without the key.
func (o Options) GoString() string { return o.String() }

// own is what of a request's body the adapter writes itself.
var own = []string{
	"anthropic_version", "cache_control", "max_tokens", "messages", "model", "output_config.effort", "output_config.format", "service_tier", "stream", "system",
	"temperature", "thinking", "tool_choice", "tools",
}

// Check refuses invalid options, with [agent.CodeInvalidInput] and the path of the
// field under models of an agents file. New takes them, and the first call fails.
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
