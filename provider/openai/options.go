package openai

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// API is one of the two APIs of OpenAI.
type API string

// The two APIs.
const (
	ChatCompletions API = "chat_completions"
	Responses       API = "responses"
)

// Options says how to reach a server. With the zero value or nil, everything comes from
// the environment.
type Options struct {
	// APIKey is the API key. Empty means $OPENAI_API_KEY, which New reads. But if BaseURL
	// is set to a server that is not OpenAI's, empty means no key: no other server gets
	// OpenAI's key, and most need none.
	APIKey string `json:"-"`

	// SignIn returns the token of each request, instead of a key. Nil means the key.
	SignIn model.SignIn `json:"-"`

	// Own says that the models are OpenAI's although the server is neither OpenAI's nor
	// Azure's, such as a gateway. Then requests may have fields that only OpenAI's models
	// understand.
	Own bool

	// BaseURL is the API's address with its version: "http://localhost:11434/v1". Empty
	// means $OPENAI_BASE_URL or, without it, OpenAI's own.
	BaseURL string

	// HTTPClient sends the requests. Nil means a new client without a timeout, because
	// the context of a call has one. If the client has no policy for redirects, it
	// follows none: else another host could get the key.
	HTTPClient *http.Client `json:"-"`

	// Name is the server's name in full names of models, the part before the first slash.
	// Empty means "openai".
	Name string

	// API is the API to use. Empty means Responses for OpenAI's own servers and Azure's,
	// and ChatCompletions for all others.
	API API

	// KeepThinking sends the thinking of this server's models back to it, as
	// reasoning_content. DeepSeek and Kimi require it of a model that thinks and calls
	// tools; others ignore or refuse it. It works only with ChatCompletions.
	KeepThinking bool

	// MaxTokensField is the field of ChatCompletions that limits a reply: MaxTokens or
	// MaxCompletionTokens. Empty means the latter for OpenAI's own models on any server,
	// and the former for all others.
	MaxTokensField string

	// NoStreamOptions omits stream_options of ChatCompletions, which asks for the usage
	// of a reply. Without it, many servers report no usage, and the runtime estimates it.
	NoStreamOptions bool

	// KeepCallIDs sends the server's own ids of tool calls back, instead of ours: some
	// gateways keep thinking in them. Kimi's models always get theirs, because they were
	// trained on them.
	KeepCallIDs bool

	// ToolChoice says whether the model has to call a tool.
	ToolChoice model.ToolChoice

	// ServiceTier is sent with each request: auto, default, flex, priority, fast, scale,
	// ultrafast, or another server's own word. Empty means that nothing is sent. Prices
	// are those of the tier, if they are known.
	ServiceTier string

	// ServerTools are tools that the server runs itself, only with Responses. Their steps
	// are stored, and sent back only to the same model.
	ServerTools []model.ServerTool

	// Extra is added to every request.
	Extra model.Extra `json:"-"`

	// Infos is what is known of models, by the server's names for them. It comes before
	// the table of OpenAI's own models.
	Infos map[string]model.Info
}

func (o *Options) baseURL() string {
	return cmp.Or(o.BaseURL, os.Getenv(envBaseURL), defaultBaseURL)
}

func (o *Options) apiKey(own bool) string {
	switch {
	case o.APIKey != "" || o.SignIn != nil:
		return o.APIKey
	// The environment's key belongs to OpenAI, so no other server gets it.
	case o.BaseURL != "" && !own:
		return ""
	}
	return strings.TrimSpace(os.Getenv(envKey))
}

func (o *Options) name() string { return cmp.Or(o.Name, defaultName) }

func (o *Options) api(own bool) API {
	switch {
	case o.API != "":
		return o.API
	case own:
		return Responses
	}
	return ChatCompletions
}

// ways returns the options about how models are called, without secrets.
func (o *Options) ways() Options {
	return Options{
		KeepThinking: o.KeepThinking, MaxTokensField: o.MaxTokensField, NoStreamOptions: o.NoStreamOptions, KeepCallIDs: o.KeepCallIDs,
		ToolChoice: o.ToolChoice, ServiceTier: o.ServiceTier, ServerTools: slices.Clone(o.ServerTools), Infos: o.Infos,
	}
}

// String returns the options without the key.
func (o Options) String() string {
	return fmt.Sprintf("openai.Options{Name: %q, BaseURL: %q, API: %q}", o.name(), model.RedactedURL(o.baseURL()), o.API)
}

// GoString returns the same as String.
func (o Options) GoString() string { return o.String() }

// The fields of ChatCompletions that limit a reply.
const (
	MaxTokens           = "max_tokens"
	MaxCompletionTokens = "max_completion_tokens"
)

// Fields of a request that the adapter writes itself, by API, and fields whose replies it
// could not read.
var (
	chatOwn = []string{
		"audio", "function_call", "functions", "max_completion_tokens", "max_tokens", "messages", "modalities", "model", "n", "prompt_cache_key",
		"reasoning_effort", "response_format", "service_tier", "stream", "stream_options", "temperature", "tool_choice", "tools",
	}
	responsesOwn = []string{
		"background", "conversation", "include", "input", "instructions", "max_output_tokens", "model", "previous_response_id", "prompt", "prompt_cache_key",
		"reasoning.effort", "reasoning.summary", "service_tier", "store", "stream", "stream_options", "temperature", "text.format", "tool_choice", "tools",
	}
)

// Tiers of OpenAI's own servers. Responses has one more.
var (
	tiers = []string{"auto", "default", "flex", "priority", "fast", "scale", ultrafast}
	tier  = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
)

const ultrafast = "ultrafast"

// Check returns an [agent.CodeInvalidInput] error with the field's path in an agents file
// if an option is invalid. New accepts such options, and the first call fails.
func (o *Options) Check() error {
	api, own := o.api(isOwn(o.baseURL())), o.Own || isOwn(o.baseURL())
	fault := func(field, format string, args ...any) error {
		return agent.Errorf(agent.CodeInvalidInput, "%s %s", field, fmt.Sprintf(format, args...)).WithPath(field)
	}
	forms := []API{ChatCompletions, Responses}
	fields := chatOwn
	if api == Responses {
		fields = responsesOwn
	}
	switch {
	case !slices.Contains(forms, api):
		return fault("api", "must be %s or %s, not %q", ChatCompletions, Responses, api)
	case o.KeepThinking && api != ChatCompletions:
		return fault("keep_thinking", "is for %s only", ChatCompletions)
	case o.MaxTokensField != "" && api != ChatCompletions:
		return fault("max_tokens_field", "is for %s only", ChatCompletions)
	case !slices.Contains([]string{"", MaxTokens, MaxCompletionTokens}, o.MaxTokensField):
		return fault("max_tokens_field", "must be %s or %s, not %q", MaxTokens, MaxCompletionTokens, o.MaxTokensField)
	case o.NoStreamOptions && api != ChatCompletions:
		return fault("stream_options", "is for %s only", ChatCompletions)
	case len(o.ServerTools) > 0 && api != Responses:
		return fault("server_tools", "are for %s only", Responses)
	case o.ServiceTier == "":
	case o.ServiceTier == ultrafast && own && api != Responses:
		return fault("service_tier", "%s is for %s only", ultrafast, Responses)
	case own && !slices.Contains(tiers, o.ServiceTier):
		return fault("service_tier", "must be %s, not %q", strings.Join(tiers, ", "), o.ServiceTier)
	case !tier.MatchString(o.ServiceTier):
		return fault("service_tier", "must be a word, not %q", o.ServiceTier)
	}
	if err := errors.Join(o.ToolChoice.Check(), model.CheckServerTools(o.ServerTools)); err != nil {
		return err
	}
	return o.Extra.Check(fields...)
}
