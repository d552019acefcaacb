package openai_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
)

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int
		body    string
		headers []string
		kind    agent.FaultKind
		message string
	}{
		{"bad request", 400, `{"error":{"message":"Invalid schema for function 'f'","type":"invalid_request_error","param":"tools","code":null}}`, nil, agent.FaultBadRequest, "openai answered 400: Invalid schema for function 'f'"},
		{"with a request id", 400, `{"error":{"message":"no"}}`, []string{"x-request-id", "req_7"}, agent.FaultBadRequest, "openai answered 400: no (req_7)"},
		{"context, by its code", 400, `{"error":{"message":"Too much.","type":"invalid_request_error","code":"context_length_exceeded"}}`, nil, agent.FaultContext, ""},
		{"context, vLLM", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","param":null,"code":400}`, nil, agent.FaultContext, ""},
		{"context, llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing it","type":"exceed_context_size_error"}}`, nil, agent.FaultContext, ""},
		{"context, Ollama", 500, `{"error":{"message":"the input length exceeds the context length","type":"api_error","param":null,"code":null}}`, nil, agent.FaultContext, ""},
		{"context, Gemini", 400, `[{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, nil, agent.FaultContext, ""},
		{"context, xAI", 400, `{"code":"400","error":"This model's maximum prompt length is 131072 but the request contains 200000 tokens."}`, nil, agent.FaultContext, ""},
		{"context, LM Studio", 400, `{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"}`, nil, agent.FaultContext, ""},
		{"context, LM Studio's other words", 400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 5000>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input"}`, nil, agent.FaultContext, ""},
		{"context, LM Studio in the midst", 400, `{"error":"Reached context length of 4096 tokens with model (arch: llama) that does not currently support mid-generation context overflow."}`, nil, agent.FaultContext, ""},
		{"context, LiteLLM", 400, `{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: AnthropicError - prompt: too many","type":"None","param":"None","code":"400"}}`, nil, agent.FaultContext, ""},
		{"context, Together", 422, `{"id":"o","error":{"message":"Input validation error: ` + "`inputs` tokens + `max_new_tokens`" + ` must be <= 8193. Given: 9000 ` + "`inputs`" + ` tokens and 512 ` + "`max_new_tokens`" + `","type":"invalid_request_error","param":"max_tokens","code":null}}`, nil, agent.FaultContext, ""},
		{"context, Together's other words", 422, `{"error":{"message":"Input validation error: ` + "`inputs`" + ` must have less than 4096 tokens. Given: 5000","type":"invalid_request_error"}}`, nil, agent.FaultContext, ""},
		{"a call that went wrong, Groq", 400, `{"error":{"message":"Failed to call a function. Please adjust your prompt.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=f>{"}}`, nil, agent.FaultTransient, ""},
		{"JSON that went wrong, Groq", 400, `{"error":{"message":"Failed to generate JSON.","type":"invalid_request_error","code":"json_validate_failed"}}`, nil, agent.FaultTransient, ""},
		{"moderation, OpenRouter", 403, `{"error":{"code":403,"message":"x requires moderation on openai. Your input was flagged for \"violence\".","metadata":{"reasons":["violence"],"flagged_input":"how to","provider_name":"OpenAI"}}}`, nil, agent.FaultBadRequest, ""},
		{"no right, OpenRouter", 403, `{"error":{"code":403,"message":"Your key has no right to this model"}}`, nil, agent.FaultAuth, ""},
		{"wrong key", 401, `{"error":{"message":"Incorrect API key provided: ` + key + `.","type":"invalid_request_error","code":"invalid_api_key"}}`, nil, agent.FaultAuth, "openai answered 401: Incorrect API key provided: [secret].; check the key of openai on the worker"},
		{"no credit, OpenRouter", 402, `{"error":{"code":402,"message":"Insufficient credits"}}`, nil, agent.FaultQuota, ""},
		{"unknown model, Ollama", 404, `{"error":{"message":"model \"llama\" not found, try pulling it first","type":"not_found_error","param":null,"code":null}}`, nil, agent.FaultBadRequest, `openai answered 404: model "llama" not found, try pulling it first`},
		{"timeout of theirs", 408, ``, nil, agent.FaultTransient, "openai answered 408: Request Timeout"},
		{"conflict", 409, `{}`, nil, agent.FaultTransient, "openai answered 409: Conflict"},
		{"too large", 413, `{"detail":"Payload too large"}`, nil, agent.FaultContext, "openai answered 413: Payload too large"},
		{"refused by FastAPI", 422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, nil, agent.FaultBadRequest, `openai answered 422: [{"loc":["body"],"msg":"field required"}]`},
		{"rate limit", 429, `{"error":{"message":"Rate limit reached for gpt-4o","type":"tokens","code":"rate_limit_exceeded"}}`, nil, agent.FaultRateLimit, "openai answered 429: Rate limit reached for gpt-4o"},
		{"rate limit that speaks of the context", 429, `{"error":{"message":"Please reduce the length of the messages or wait."}}`, nil, agent.FaultRateLimit, ""},
		{"quota", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, nil, agent.FaultQuota, ""},
		{"rate limit that sounds like a quota, Gemini", 429, `[{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED"}}]`, nil, agent.FaultRateLimit, ""},
		{"a provider's own words, OpenRouter", 502, `{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"out of\nmemory","provider_name":"x"}}}`, nil, agent.FaultTransient, "openai answered 502: Provider returned error: out of memory"},
		{"gateway's page", 502, "<html>\n<h1>Bad\nGateway</h1></html>", nil, agent.FaultTransient, "openai answered 502: Bad Gateway"},
		{"gateway's text", 503, "upstream\nconnect error", nil, agent.FaultOverload, "openai answered 503: upstream connect error"},
		{"a word, TGI", 503, `{"error":"Model is overloaded","error_type":"overloaded"}`, nil, agent.FaultOverload, "openai answered 503: Model is overloaded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, s := serve(t, standin.Answer(c.status, "application/json", c.body, c.headers...))
			fault := mustFail(t, m, s)
			if fault.Provider.Kind != c.kind || fault.Provider.HTTP != c.status {
				t.Errorf("got %s with status %d, want %s with %d", fault.Provider.Kind, fault.Provider.HTTP, c.kind, c.status)
			}
			if c.message != "" && fault.Message != c.message {
				t.Errorf("got %q, want %q", fault.Message, c.message)
			}
			if auth := fault.Code == agent.CodeProviderAuth; auth != (c.kind == agent.FaultAuth) {
				t.Errorf("got the code %s for %s", fault.Code, c.kind)
			}
		})
	}
}

// How headers of all providers are read is tested in package model.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		name    string
		headers []string
		want    time.Duration
	}{
		{"seconds", []string{"retry-after", "17"}, 17 * time.Second},
		{"the limit that is used up", []string{
			"x-ratelimit-remaining-requests", "5", "x-ratelimit-reset-requests", "1h",
			"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "1m30s",
		}, 90 * time.Second},
		{"the longest limit", []string{
			"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "20s",
			"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6ms",
		}, 20 * time.Second},
		{"nonsense", []string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "soon"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, s := serve(t, standin.Answer(429, "application/json", `{"error":{"message":"slow down"}}`, c.headers...))
			got := mustFail(t, m, s).RetryAfter
			if got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// Up to its reason to stop, a stream that ends is a fault, also one that says that
// this is its end; after it, only one that is broken is.
func TestEnds(t *testing.T) {
	m, s := serve(t, standin.Drip(stream(begin, text("Hel"), end), 0))
	fault := mustFail(t, m, s)
	if fault.Provider.Kind != agent.FaultTransient || !strings.Contains(fault.Message, "the stream broke off after") {
		t.Errorf("without a reason: got %s: %s", fault.Provider.Kind, fault.Message)
	}
	m, _ = serve(t, standin.Drip(stream(begin, text("Hel"), because("stop")), 0))
	if reply, _ := standin.Reply(t, m, ask("Hello")); reply.Finish != model.FinishStop {
		t.Errorf("with a reason and no end: got %+v", reply)
	}
	m, s = serve(t, func(w http.ResponseWriter, r *http.Request) {
		standin.Drip(stream(begin, text("Hel"), because("stop")), 0)(w, r)
		panic(http.ErrAbortHandler)
	})
	mustFail(t, m, s)
}

var wholeChat = stream(begin, text("Hello"), calls(piece(0, "a", "f", `{"city":`)), calls(piece(0, "", "", `"Rome"}`)), because("tool_calls"), counted, end)

func TestErrorInMidStream(t *testing.T) {
	for data, want := range map[string]struct {
		kind    agent.FaultKind
		message string
	}{
		`{"error":{"message":"Overloaded","type":"overloaded_error"}}`:                       {agent.FaultOverload, "openai broke off its reply: Overloaded (overloaded_error)"},
		`{"error":{"code":429,"message":"Rate limited"},"choices":[]}`:                       {agent.FaultRateLimit, "openai broke off its reply: Rate limited (429)"},
		`{"error":{"message":"CUDA out of memory","type":"InternalServerError","code":500}}`: {agent.FaultTransient, ""},
		`{"object":"error","message":"bad","type":"BadRequestError","code":400}`:             {agent.FaultBadRequest, ""},
		`{"error":{"message":"No more.","code":"insufficient_quota"}}`:                       {agent.FaultQuota, ""},
		`{"error":{"message":"Too long.","code":"context_length_exceeded"}}`:                 {agent.FaultContext, ""},
		`{"error":{"message":"Wrong key.","code":"invalid_api_key"}}`:                        {agent.FaultAuth, ""},
		`{"error":"something"}`: {agent.FaultTransient, "openai broke off its reply: something"},
		`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`: {agent.FaultTransient, "openai broke off its reply: the model was stopped (error)"},
		`{"choices":`: {agent.FaultTransient, ""},
	} {
		m, s := serve(t, standin.Drip(stream(begin, text("Hel"), data, text("lo"), because("stop"), end), 0))
		fault := mustFail(t, m, s)
		if fault.Provider.Kind != want.kind || fault.Provider.HTTP != 200 || want.message != "" && fault.Message != want.message {
			t.Errorf("%s: got %s: %s", data, fault.Provider.Kind, fault.Message)
		}
	}
}

func TestReach(t *testing.T) {
	standin.Unreachable(t, at, ask("Hello"), "check that it runs")
	standin.ClientTimeout(t, at, ask("Hello"), key)
	standin.Redirect(t, at, ask("Hello"), key)
	standin.WrongURLs(t, at, ask("Hello"))
}

func TestWrongPlace(t *testing.T) {
	m, s := serve(t, standin.Answer(200, "text/html; charset=utf-8", "<html>Welcome</html>"))
	if fault := mustFail(t, m, s); fault.Provider.Kind != agent.FaultBadRequest || !strings.Contains(fault.Message, "web page") {
		t.Errorf("a page: got %s: %s", fault.Provider.Kind, fault.Message)
	}
	m, s = serve(t, standin.Answer(404, "text/plain", ""))
	if fault := mustFail(t, m, s); fault.Provider.Kind != agent.FaultBadRequest || !strings.Contains(fault.Message, "is there such an API at 127.0.0.1:") {
		t.Errorf("no page: got %s: %s", fault.Provider.Kind, fault.Message)
	}
	for _, answer := range []http.HandlerFunc{ // of servers whose API is at /v1
		standin.Answer(404, "text/plain", "404 page not found"),
		standin.Answer(404, "application/json", `{"detail":"Not Found"}`),
		standin.Answer(200, "text/html", "<html>Welcome</html>"),
	} {
		s = standin.Listen(t, answer)
		m = openai.New(&openai.Options{APIKey: key, BaseURL: s.URL})
		require.Contains(t, mustFail(t, m, s).Message, s.URL+"/v1")
	}
	m, s = serve(t, standin.Answer(200, "application/json", `{"error":{"code":503,"message":"No provider"}}`))
	if fault := mustFail(t, m, s); fault.Provider.Kind != agent.FaultOverload {
		t.Errorf("a problem with status 200: got %s: %s", fault.Provider.Kind, fault.Message)
	}
	for _, body := range []string{`{"choices":[{"mess`, `{"choices":[]}`, `{}`} {
		m, s = serve(t, standin.Answer(200, "application/json", body))
		if fault := mustFail(t, m, s); fault.Provider.Kind != agent.FaultTransient {
			t.Errorf("%s: got %s: %s", body, fault.Provider.Kind, fault.Message)
		}
	}
}
