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

// Options says how to reach Bedrock. With the zero value or nil, everything comes from
// the environment and AWS's shared files, which the first call reads.
type Options struct {
	// Region is the region of the models, "eu-central-1". Empty means the region of AWS's
	// default chain: $AWS_REGION, or the profile's.
	Region string

	// APIKey is a Bedrock API key. Empty means $AWS_BEARER_TOKEN_BEDROCK, which New
	// reads, unless Credentials are set. If that is empty too, requests are signed.
	APIKey string `json:"-"`

	// Credentials sign the requests. Nil means AWS's default chain.
	Credentials aws.CredentialsProvider `json:"-"`

	// BaseURL is the API's address: "https://vpce-1.bedrock-runtime.example". Empty means
	// $AWS_ENDPOINT_URL_BEDROCK_RUNTIME or, without it, the region's own.
	BaseURL string

	// HTTPClient sends the requests to models. Nil means a new client without a timeout,
	// because the context of a call has one. The SDK's own client fetches credentials.
	HTTPClient *http.Client `json:"-"`

	// Name is the provider's name in full names of models, the part before the first
	// slash. Empty means "bedrock".
	Name string

	// CacheTTL is how long the provider keeps cached tokens: five minutes or an hour,
	// which costs more. Zero means five minutes.
	CacheTTL time.Duration

	// ServiceTier is default, flex, priority or reserved; empty means that nothing is
	// sent. Only the default's price is known.
	ServiceTier string

	// Citations lets Claude cite PDFs. Bedrock then also shows it their pages as images, which
	// cost more tokens. Requests with a schema for the answer are without. Other models refuse
	// it.
	Citations bool

	// Extra is added to every request.
	Extra model.Extra `json:"-"`
}

func (o *Options) apiKey() string {
	// Explicit credentials replace the environment's key.
	if o.APIKey != "" || o.Credentials != nil {
		return o.APIKey
	}
	return strings.TrimSpace(os.Getenv(envKey))
}

func (o *Options) name() string { return cmp.Or(o.Name, defaultName) }

func (o *Options) baseURL() string { return cmp.Or(o.BaseURL, os.Getenv(envBaseURL)) }

// String returns the options without the key.
func (o Options) String() string {
	return fmt.Sprintf("bedrock.Options{Name: %q, Region: %q, BaseURL: %q}", o.name(), o.Region, model.RedactedURL(o.baseURL()))
}

// GoString returns the same as String.
func (o Options) GoString() string { return o.String() }

// own are the fields of a request's body that the adapter writes itself.
var own = []string{
	"additionalModelRequestFields.reasoningConfig", "additionalModelRequestFields.reasoning_effort", "additionalModelRequestFields.thinking",
	"inferenceConfig.maxTokens", "inferenceConfig.temperature", "messages", "outputConfig.effort", "outputConfig.textFormat", "serviceTier", "system", "toolConfig",
}

const tierDefault = "default"

// Check returns an [agent.CodeInvalidInput] error with the field's path in an agents file
// if an option is invalid. New accepts such options, and the first call fails.
func (o *Options) Check() error {
	if err := model.CheckCacheTTL(o.CacheTTL); err != nil {
		return err
	}
	if !slices.Contains([]string{"", tierDefault, "flex", "priority", "reserved"}, o.ServiceTier) {
		return agent.Errorf(agent.CodeInvalidInput, "service_tier must be %s, flex, priority or reserved, not %q", tierDefault, o.ServiceTier).WithPath("service_tier")
	}
	return o.Extra.Check(own...)
}
