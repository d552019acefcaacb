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

// Options says how to reach the provider. With the zero value or nil, everything comes
// from the environment.
type Options struct {
	// APIKey is the API key. Empty means $GEMINI_API_KEY or, without it, $GOOGLE_API_KEY,
	// which New reads.
	APIKey string `json:"-"`

	// SignIn returns the token of each request, instead of a key. Nil means the key.
	SignIn model.SignIn `json:"-"`

	// BaseURL is the API's address without its version: "https://gateway.example". Empty
	// means $GOOGLE_GEMINI_BASE_URL or, without it, Google's own.
	BaseURL string

	// HTTPClient sends the requests. Nil means a new client without a timeout, because
	// the context of a call has one. If the client has no policy for redirects, it
	// follows none: else another host could get the key.
	HTTPClient *http.Client `json:"-"`

	// Name is the provider's name in full names of models, the part before the slash.
	// Empty means "gemini".
	Name string

	// ServiceTier is standard, flex or priority; empty means that nothing is sent. The
	// prices of the latter two are unknown.
	ServiceTier string

	// ToolChoice says whether the model has to call a tool.
	ToolChoice model.ToolChoice

	// Extra is added to every request.
	Extra model.Extra `json:"-"`
}

func (o *Options) apiKey() string {
	// A sign-in replaces the environment's key.
	if o.SignIn != nil {
		return o.APIKey
	}
	return cmp.Or(o.APIKey, strings.TrimSpace(os.Getenv(envKey)), strings.TrimSpace(os.Getenv(envOtherKey)))
}

func (o *Options) baseURL() string {
	return cmp.Or(o.BaseURL, os.Getenv(envBaseURL), defaultBaseURL)
}

func (o *Options) name() string { return cmp.Or(o.Name, defaultName) }

// String returns the options without the key.
func (o Options) String() string {
	return fmt.Sprintf("gemini.Options{Name: %q, BaseURL: %q}", o.name(), model.RedactedURL(o.baseURL()))
}

// GoString returns the same as String.
func (o Options) GoString() string { return o.String() }

// own are the fields of a request's body that the adapter writes itself, and fields whose
// replies it could not read.
var own = []string{
	"contents", "generationConfig.candidateCount", "generationConfig.maxOutputTokens", "generationConfig.responseJsonSchema", "generationConfig.responseMimeType",
	"generationConfig.responseModalities", "generationConfig.responseSchema", "generationConfig.temperature", "generationConfig.thinkingConfig",
	"model", "serviceTier", "systemInstruction", "toolConfig.functionCallingConfig", "tools",
}

// Check returns an [agent.CodeInvalidInput] error with the field's path in an agents file
// if an option is invalid. New accepts such options, and the first call fails.
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
