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

// API is a form in which models are asked.
type API string

// The forms.
const (
	ChatCompletions API = "chat_completions"
	Responses       API = "responses"
)

// Options say how to reach a server. The zero value, and nil, take everything
// from the environment.
type Options struct {
	// APIKey is the key that pays. Empty means $OPENAI_API_KEY, read by New,
	// unless BaseURL is set to a server that is not OpenAI's: no other server is
	// told OpenAI's key, and most need none.
	APIKey string `json:"-"`

	// SignIn gives the token of each request, instead of a key. Nil means the key.
	SignIn model.SignIn `json:"-"`

	// Own says that models are OpenAI's own though the server is neither OpenAI's nor
	// Azure's: a gateway to them, say. It is told what only they understand.
	Own bool

	// BaseURL is where the API is, with its version: "http://localhost:11434/v1".
	// Empty means $OPENAI_BASE_URL, or else OpenAI's own.
	BaseURL string

	// HTTPClient makes the requests. Nil means a client of our own, which has no
	// timeout: the context of a call has one. A client that has no policy for
	// redirects follows none, so that no other host is told the key.
	HTTPClient *http.Client `json:"-"`

	// Name is what the server is called in full names of models, the part before
	// the first slash. Empty means "openai".
	Name string

	// API is the form to ask in. Empty means Responses for OpenAI's own servers
	// and Azure's, ChatCompletions for all others.
	API API

	// KeepThinking sends the thinking of this server's models back to it, as
	// reasoning_content. DeepSeek and Kimi demand it of a model that thinks and
	// calls tools; others ignore or refuse it. It is for ChatCompletions only.
	KeepThinking bool

	// MaxTokensField is the field of ChatCompletions that bounds a reply: MaxTokens or
	// MaxCompletionTokens. Empty means the latter for OpenAI's own models, on whatever
	// server, and the former for all others.
	MaxTokensField string

	// NoStreamOptions leaves out stream_options of ChatCompletions, which asks for the usage
	// of a reply. Without it many servers tell none, and the runtime estimates it.
	NoStreamOptions bool

	// KeepCallIDs sends the ids back that the server gave its calls of tools, instead of
	// ours: some gateways keep thoughts in them. It is so for Kimi's models anyway, which
	// were trained on ids of their own.
	KeepCallIDs bool

	// ToolChoice says whether the model has to call a tool.
	ToolChoice model.ToolChoice

	// ServiceTier is asked for in each request: auto, default, flex, priority, fast, scale,
	// ultrafast, or on servers that are not OpenAI's a word of theirs. Empty means that
	// nothing is sent. Prices are those of the tier, as far as they are known.
	ServiceTier string

	// ServerTools are tools that the server carries out itself, for Responses only. What they
	// did is kept, and given back to the same model alone.
	ServerTools []model.ServerTool

	// Extra is what requests carry besides.
	Extra model.Extra `json:"-"`

	// Infos tells what is known of models, by the server's name for them. It
	// comes before the table of OpenAI's own models.
	Infos map[string]model.Info
}

func (o *Options) baseURL() string {
	return cmp.Or(o.BaseURL, os.Getenv(envBaseURL), defaultBaseURL)
}

func (o *Options) apiKey(own bool) string {
	switch {
	case o.APIKey != "" || o.SignIn != nil:
		return o.APIKey
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

// ways are the options that say how models are asked, without secrets.
func (o *Options) ways() Options {
	return Options{
		KeepThinking: o.KeepThinking, MaxTokensField: o.MaxTokensField, NoStreamOptions: o.NoStreamOptions, KeepCallIDs: o.KeepCallIDs,
		ToolChoice: o.ToolChoice, ServiceTier: o.ServiceTier, ServerTools: slices.Clone(o.ServerTools), Infos: o.Infos,
	}
}

// String shows the options without the key.
func (o Options) String() string {
	return fmt.Sprintf("openai.Options{Name: %q, BaseURL: %q, API: %q}", o.name(), model.RedactedURL(o.baseURL()), o.API)
}

// GoString shows the options without the key.
func (o Options) GoString() string { return o.String() }

// The fields of ChatCompletions that bound a reply.
const (
	MaxTokens           = "max_tokens"
	MaxCompletionTokens = "max_completion_tokens"
)

// What a request has of the adapter's own, by form, and what the adapter could not read the
// reply of.
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

// Tiers of OpenAI's own servers; Responses have one more.
var (
	tiers = []string{"auto", "default", "flex", "priority", "fast", "scale", ultrafast}
	tier  = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
)

const ultrafast = "ultrafast"

// Check refuses invalid options, with [agent.CodeInvalidInput] and the path of the
// field under models of an agents file. New takes them, and the first call fails.
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
