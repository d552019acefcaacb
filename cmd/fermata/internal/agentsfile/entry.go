package agentsfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
	"github.com/fermata-agents/fermata/provider/azure"
	"github.com/fermata-agents/fermata/provider/bedrock"
	"github.com/fermata-agents/fermata/provider/gemini"
	"github.com/fermata-agents/fermata/provider/openai"
	"github.com/fermata-agents/fermata/provider/vertex"
)

// modelEntry is a model under a name of your own. It has no key for a secret: files are
// shared, so a secret is in a variable of the worker's environment.
type modelEntry struct {
	// Provider is the API that the model's server speaks.
	Provider string `json:"provider"`
	// Model is the provider's own name for the model.
	Model string `json:"model"`
	// BaseURL is the server's http or https URL; empty means the provider's own server.
	BaseURL string `json:"base_url"`
	// KeyEnv is the environment variable with the key; empty means the provider's usual
	// variable, or no key if base_url is set.
	KeyEnv string `json:"api_key_env"`
	// Price is what the model costs; zero means the price that the provider's table has.
	Price agent.Price `json:"price"`
	// Window is how many tokens a request and its reply may have together; zero means what is
	// known of the model.
	Window int `json:"window,omitempty"`
	// MaxOutput is how many tokens one reply may have; zero means what is known of the model.
	MaxOutput int `json:"max_output,omitempty"`
	// Headers are sent with each request. "${NAME}" in a value is a variable of the worker's
	// environment.
	Headers map[string]string `json:"headers"`
	// Body is merged into each request's JSON. "${NAME}" in a text is a variable of the
	// worker's environment.
	Body json.RawMessage `json:"body"`
	// API is the form of OpenAI's API that the server speaks; empty means responses for
	// OpenAI's and Azure's own servers, and chat_completions for others.
	API openai.API `json:"api"`
	// KeepThinking gives the model its earlier thoughts back when it calls tools. It is for
	// chat_completions only.
	KeepThinking bool `json:"keep_thinking"`
	// KeepCallIDs sends the server's own ids of tool calls back to it. Some gateways need them.
	KeepCallIDs bool `json:"keep_call_ids"`
	// MaxTokensField is the field that bounds a reply; empty means max_completion_tokens for
	// OpenAI's own models, and max_tokens for others. It is for chat_completions only.
	MaxTokensField string `json:"max_tokens_field" enum:"max_tokens,max_completion_tokens"`
	// StreamOptions asks the server for the usage of a reply. Set it to false for a server that
	// refuses the field stream_options; usage is then estimated.
	StreamOptions *bool `json:"stream_options" default:"true"`
	// ToolChoice says whether the model must call a tool first.
	ToolChoice model.ToolChoice `json:"tool_choice"`
	// ServiceTier is the provider's word for how fast and how dear the service is, such as
	// flex.
	ServiceTier string `json:"service_tier"`
	// CacheTTL is how long the provider keeps a prompt in its cache: 5m or 1h.
	CacheTTL agent.Duration `json:"cache_ttl" default:"5m"`
	// ServerTools are tools that the provider carries out itself.
	ServerTools []model.ServerTool `json:"server_tools"`
	// Citations lets Claude cite the files that it reads. They cost more tokens then, and an
	// answer with a schema has none.
	Citations bool `json:"citations"`
	// Region is the cloud's region; empty means the environment's.
	Region string `json:"region"`
	// Project is the project in Google Cloud; empty means the environment's.
	Project string `json:"project"`
	// APIVersion is the version of Azure's API; empty means the environment's, or the newest.
	APIVersion string `json:"api_version"`
}

// The fields that models of every provider have, and those that only some have.
var (
	commonFields   = []string{"provider", "model", "base_url", "price", "window", "max_output", "headers", "body"}
	openaiFields   = []string{"api", "api_key_env", "keep_call_ids", "max_tokens_field", "service_tier", "stream_options", "tool_choice"}
	providerFields = map[string][]string{
		providerAnthropic: {"api_key_env", "cache_ttl", "citations", "server_tools", "service_tier"},
		providerAzure:     append([]string{"api_version"}, openaiFields...),
		providerBedrock:   {"api_key_env", "cache_ttl", "citations", "region", "service_tier"},
		providerGemini:    {"api_key_env", "service_tier", "tool_choice"},
		providerOpenAI:    append([]string{"keep_thinking", "server_tools"}, openaiFields...),
		providerVertex:    {"cache_ttl", "citations", "project", "region"},
	}
)

// foreign returns a field of an entry that its provider does not have; empty if there is
// none.
func foreign(e entry, provider string) string {
	for _, field := range entries(e.value) {
		if !slices.Contains(commonFields, field.name) && !slices.Contains(providerFields[provider], field.name) {
			return field.name
		}
	}
	return ""
}

// fault returns what is wrong with an entry, and where.
func (e modelEntry) fault(at entry) (*yaml.Node, error) {
	field := foreign(at, e.Provider)
	// In the order of a reader's repair: without a provider the other fields mean nothing.
	switch {
	case !known(e.Provider):
		return at.at("provider"), fmt.Errorf(".provider must be %s, not %s", providersNamed(), quote(e.Provider))
	case e.Model == "":
		return at.key, fmt.Errorf(".model is missing: write the provider's own name for it")
	case field != "":
		return at.at(field), fmt.Errorf(".%s is not for provider %s", field, e.Provider)
	case secretFault(e.KeyEnv) != nil:
		return at.at("api_key_env"), fmt.Errorf(".api_key_env: %w", secretFault(e.KeyEnv))
	case workersOwn(e.KeyEnv):
		return at.at("api_key_env"), fmt.Errorf(".api_key_env names %s, %s", e.KeyEnv, isWorkersOwn)
	case !isHTTP(e.BaseURL):
		return at.at("base_url"), fmt.Errorf(".base_url must be an http or https URL with a host")
	case e.Window < 0 || e.MaxOutput < 0:
		return at.key, fmt.Errorf(": window and max_output must be positive")
	case min(e.Price.Input, e.Price.Output, e.Price.CacheRead, e.Price.CacheWrite, e.Price.Search) < 0:
		return at.at("price"), fmt.Errorf(".price has an amount below zero")
	}
	return nil, nil
}

// isHTTP reports whether a base URL is empty or can be requested.
func isHTTP(base string) bool {
	u, err := url.Parse(base)
	return base == "" || err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// keys returns the variables that the entry needs: for its key, headers and body.
func (e modelEntry) keys() (list []string) {
	key := e.KeyEnv
	if key == "" && e.BaseURL == "" {
		key = keyOfProvider(e.Provider)
	}
	if key != "" {
		list = append(list, key)
	}
	more, _ := e.extra() // errors were reported before
	for _, env := range more.variables {
		if !slices.Contains(list, env) {
			list = append(list, env)
		}
	}
	return list
}

// onTerms reports whether the entry uses options with a price of their own.
func (e modelEntry) onTerms() bool { return e.ServiceTier != "" || e.CacheTTL != 0 }

// open makes the model, or returns what is wrong with the entry. It sends nothing.
func (e modelEntry) open(name string) (model.Model, error) {
	more, err := e.extra()
	if err != nil {
		return nil, err
	}
	m, err := e.build(name, more.Extra)
	if err != nil {
		return nil, err
	}
	// The file's price and sizes override the adapter's table.
	m = model.WithInfo(m, e.Model, model.Info{Price: e.Price, Window: e.Window, MaxOutput: e.MaxOutput})
	// The model exists but fails its calls: other models of the worker must still work.
	if len(more.missing) > 0 {
		m = unset{m, name, more.missing[0]}
	}
	return m, nil
}

// key returns the entry's key. noKey stands for a key that the file names and the
// environment lacks.
func (e modelEntry) key() string {
	switch {
	case e.KeyEnv != "":
	// A cloud's adapter signs in by itself, so only a key in a file is read here.
	case slices.Contains(cloudy, e.Provider):
		return filed(cloudKeys[e.Provider])
	// The provider's key must not be sent to another server.
	case e.BaseURL == "":
		return filed(keys[e.Provider]...)
	default:
		return ""
	}
	key := variable(e.KeyEnv)
	if key == "" {
		return noKey
	}
	return key
}

// build makes the model of an entry with its provider's adapter.
func (e modelEntry) build(name string, x model.Extra) (model.Model, error) {
	provider, key, plain, ttl := model.ProviderOf(name), e.key(), e.StreamOptions != nil && !*e.StreamOptions, time.Duration(e.CacheTTL)
	// The adapter for OpenAI decides itself which servers get its key.
	if key == "" && e.BaseURL != "" && e.Provider != providerOpenAI && !slices.Contains(cloudy, e.Provider) {
		key = noKey
	}
	switch e.Provider {
	case providerAnthropic:
		o := &anthropic.Options{APIKey: key, BaseURL: e.BaseURL, Name: provider, CacheTTL: ttl, ServiceTier: e.ServiceTier, ServerTools: e.ServerTools, Citations: e.Citations, Extra: x}
		return anthropic.New(o), o.Check()
	case providerAzure:
		o := &azure.Options{
			Endpoint: e.BaseURL, APIVersion: e.APIVersion, APIKey: key, Name: provider, API: e.API, MaxTokensField: e.MaxTokensField, NoStreamOptions: plain,
			KeepCallIDs: e.KeepCallIDs, ToolChoice: e.ToolChoice, ServiceTier: e.ServiceTier, Extra: x,
		}
		return azure.New(o), o.Check()
	case providerBedrock:
		o := &bedrock.Options{Region: e.Region, APIKey: key, BaseURL: e.BaseURL, Name: provider, CacheTTL: ttl, ServiceTier: e.ServiceTier, Citations: e.Citations, Extra: x}
		return bedrock.New(o), o.Check()
	case providerGemini:
		o := &gemini.Options{APIKey: key, BaseURL: e.BaseURL, Name: provider, ServiceTier: e.ServiceTier, ToolChoice: e.ToolChoice, Extra: x}
		return gemini.New(o), o.Check()
	case providerVertex:
		o := &vertex.Options{Project: e.Project, Location: e.Region, BaseURL: e.BaseURL, Name: provider, CacheTTL: ttl, Citations: e.Citations, Extra: x}
		return vertex.New(o), o.Check()
	}
	o := &openai.Options{
		APIKey: key, BaseURL: e.BaseURL, Name: provider, API: e.API, KeepThinking: e.KeepThinking, MaxTokensField: e.MaxTokensField, NoStreamOptions: plain,
		KeepCallIDs: e.KeepCallIDs, ToolChoice: e.ToolChoice, ServiceTier: e.ServiceTier, ServerTools: e.ServerTools, Extra: x,
	}
	return openai.New(o), o.Check()
}

// ModelSettings describes in a few words how a model under models is called; empty if in
// the usual way. It shows no value of a header or of the body.
func (f *File) ModelSettings(name string) string {
	e := f.named[name]
	var list []string
	say := func(field, value string) {
		if value != "" {
			list = append(list, field+" "+value)
		}
	}
	say("service_tier", e.ServiceTier)
	if e.CacheTTL != 0 {
		say("cache_ttl", e.CacheTTL.String())
	}
	for _, t := range e.ServerTools {
		say("server_tools", string(t))
	}
	if e.Citations {
		say("citations", "true")
	}
	say("tool_choice", string(e.ToolChoice))
	say("max_tokens_field", e.MaxTokensField)
	if e.StreamOptions != nil {
		say("stream_options", fmt.Sprint(*e.StreamOptions))
	}
	if e.KeepCallIDs {
		say("keep_call_ids", "true")
	}
	say("headers", strings.Join(slices.Sorted(maps.Keys(e.Headers)), " "))
	more, _ := e.extra()
	say("body", strings.Join(slices.Sorted(maps.Keys(more.Body)), " "))
	return strings.Join(list, ", ")
}
