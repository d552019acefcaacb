package gemini

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Options say how to reach the provider. The zero value, and nil, take
// everything from the environment.
type Options struct {
	// APIKey is the key that pays. Empty means $GEMINI_API_KEY, or else
	// $GOOGLE_API_KEY, read by New.
	APIKey string `json:"-"`

	// SignIn gives the token of each request, instead of a key. Nil means the key.
	SignIn model.SignIn `json:"-"`

	// BaseURL is where the API is, without its version: "https://gateway.example".
	// Empty means $GOOGLE_GEMINI_BASE_URL, or else Google's own.
	BaseURL string

	// HTTPClient makes the requests. Nil means a client of our own, which has no
	// timeout: the context of a call has one. A client that has no policy for
	// redirects follows none, so that no other host is told the key.
	HTTPClient *http.Client `json:"-"`

	// Name is what the provider is called in full names of models, the part
	// before the slash. Empty means "gemini".
	Name string

	// ServiceTier is standard, flex or priority; empty means that nothing is sent. The price
	// of the latter two is not known.
	ServiceTier string

	// ToolChoice says whether the model has to call a tool.
	ToolChoice model.ToolChoice

	// Extra is what requests carry besides.
	Extra model.Extra `json:"-"`
}

func (o *Options) apiKey() string {
	if o.SignIn != nil {
		return o.APIKey
	}
	return cmp.Or(o.APIKey, strings.TrimSpace(os.Getenv(envKey)), strings.TrimSpace(os.Getenv(envOtherKey)))
}

func (o *Options) baseURL() string {
	return cmp.Or(o.BaseURL, os.Getenv(envBaseURL), defaultBaseURL)
}

func (o *Options) name() string { return cmp.Or(o.Name, defaultName) }

// String shows the options without the key.
func (o Options) String() string {
	return fmt.Sprintf("gemini.Options{Name: %q, BaseURL: %q}", o.name(), model.RedactedURL(o.baseURL()))
}

// GoString shows the options without the key.
func (o Options) GoString() string { return o.String() }

// own is what of a request's body the adapter writes itself, and what it could not read the
// reply of.
var own = []string{
	"contents", "generationConfig.candidateCount", "generationConfig.maxOutputTokens", "generationConfig.responseJsonSchema", "generationConfig.responseMimeType",
	"generationConfig.responseModalities", "generationConfig.responseSchema", "generationConfig.temperature", "generationConfig.thinkingConfig",
	"model", "serviceTier", "systemInstruction", "toolConfig.functionCallingConfig", "tools",
}

// Check refuses invalid options, with [agent.CodeInvalidInput] and the path of the
// field under models of an agents file. New takes them, and the first call fails.
func (o *Options) Check() error {
	tiers := []genai.ServiceTier{"", genai.ServiceTierStandard, genai.ServiceTierFlex, genai.ServiceTierPriority}
	if !slices.Contains(tiers, genai.ServiceTier(o.ServiceTier)) {
		return agent.Errorf(agent.CodeInvalidInput, "service_tier must be standard, flex or priority, not %q", o.ServiceTier).WithPath("service_tier")
	}
	if err := o.ToolChoice.Check(); err != nil {
		return err
	}
	return o.Extra.Check(own...)
}
