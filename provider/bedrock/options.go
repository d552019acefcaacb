package bedrock

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Options say how to reach Bedrock. The zero value, and nil, take everything from the
// environment and AWS's shared files, at the first call.
type Options struct {
	// Region is where the models are, "eu-central-1". Empty means that of AWS's default
	// chain: $AWS_REGION, or that of the profile.
	Region string

	// APIKey is a Bedrock API key, which is sent as it is. Empty means
	// $AWS_BEARER_TOKEN_BEDROCK, read by New, unless Credentials are set; if that is empty
	// too, requests are signed.
	APIKey string `json:"-"`

	// Credentials sign the requests. Nil means AWS's default chain.
	Credentials aws.CredentialsProvider `json:"-"`

	// BaseURL is where the API is: "https://vpce-1.bedrock-runtime.example". Empty means
	// $AWS_ENDPOINT_URL_BEDROCK_RUNTIME, or else the region's own.
	BaseURL string

	// HTTPClient makes the requests to models. Nil means a client of our own, which has no
	// timeout: the context of a call has one. Credentials are fetched by the SDK's.
	HTTPClient *http.Client `json:"-"`

	// Name is what the provider is called in full names of models, the part before the
	// first slash. Empty means "bedrock".
	Name string

	// CacheTTL is how long the provider keeps what it writes to its cache: five minutes, which
	// zero means too, or an hour, which costs more.
	CacheTTL time.Duration

	// ServiceTier is default, flex, priority or reserved; empty means that nothing is sent.
	// Only the default's price is known.
	ServiceTier string

	// Extra is what requests carry besides.
	Extra model.Extra `json:"-"`
}

func (o *Options) apiKey() string {
	if o.APIKey != "" || o.Credentials != nil {
		return o.APIKey
	}
	return strings.TrimSpace(os.Getenv(envKey))
}

func (o *Options) name() string { return cmp.Or(o.Name, defaultName) }

func (o *Options) baseURL() string { return cmp.Or(o.BaseURL, os.Getenv(envBaseURL)) }

// String shows the options without the key.
func (o Options) String() string {
	return fmt.Sprintf("bedrock.Options{Name: %q, Region: %q, BaseURL: %q}", o.name(), o.Region, model.RedactedURL(o.baseURL()))
}

// GoString shows the options without the key.
func (o Options) GoString() string { return o.String() }

// own is what of a request's body the adapter writes itself.
var own = []string{
	"additionalModelRequestFields.reasoningConfig", "additionalModelRequestFields.reasoning_effort", "additionalModelRequestFields.thinking",
	"inferenceConfig.maxTokens", "inferenceConfig.temperature", "messages", "outputConfig.effort", "outputConfig.textFormat", "serviceTier", "system", "toolConfig",
}

const tierDefault = "default"

// Check refuses invalid options, with [agent.CodeInvalidInput] and the path of the
// field under models of an agents file. New takes them, and the first call fails.
func (o *Options) Check() error {
	if err := model.CheckCacheTTL(o.CacheTTL); err != nil {
		return err
	}
	if !slices.Contains([]string{"", tierDefault, "flex", "priority", "reserved"}, o.ServiceTier) {
		return agent.Errorf(agent.CodeInvalidInput, "service_tier must be %s, flex, priority or reserved, not %q", tierDefault, o.ServiceTier).WithPath("service_tier")
	}
	return o.Extra.Check(own...)
}
