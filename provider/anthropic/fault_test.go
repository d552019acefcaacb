package anthropic_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
)

func problem(kind, message string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int
		body    string
		headers []string
		kind    agent.FaultKind
		message string
	}{
		{"bad request", 400, problem("invalid_request_error", "tools.0.name: too long"), nil, agent.FaultBadRequest, "anthropic answered 400: tools.0.name: too long"},
		{"with a request id", 400, problem("invalid_request_error", "no"), []string{"request-id", "req_7"}, agent.FaultBadRequest, "anthropic answered 400: no (req_7)"},
		{"prompt too long", 400, problem("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), nil, agent.FaultContext, "anthropic answered 400: prompt is too long: 210000 tokens > 200000 maximum"},
		{"prompt and reply too long", 400, problem("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"), nil, agent.FaultContext, ""},
		{"no credit", 400, problem("invalid_request_error", "Your credit balance is too low to access the Anthropic API."), nil, agent.FaultQuota, ""},
		{"own spend limit", 400, problem("invalid_request_error", "You have reached your specified API usage limits."), nil, agent.FaultQuota, ""},
		{"tier's spend limit", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"No more this month.","details":{"error_code":"enforced_spend_limit_reached"}}}`, nil, agent.FaultQuota, ""},
		{"wrong key", 401, problem("authentication_error", "invalid x-api-key "+key), nil, agent.FaultAuth, "anthropic answered 401: invalid x-api-key [secret]; check ANTHROPIC_API_KEY on the worker"},
		{"unknown model", 404, problem("not_found_error", "model: claude-none"), nil, agent.FaultBadRequest, "anthropic answered 404: model: claude-none"},
		{"rate limit", 429, problem("rate_limit_error", "slow down"), nil, agent.FaultRateLimit, "anthropic answered 429: slow down"},
		{"rate limit that speaks of the context", 429, problem("rate_limit_error", "long prompts exceed context limit of the minute"), nil, agent.FaultRateLimit, ""},
		{"gateway's page", 502, "<html>\n<h1>Bad\nGateway</h1></html>", nil, agent.FaultTransient, "anthropic answered 502: Bad Gateway"},
		{"gateway's text", 503, "upstream\nconnect error", nil, agent.FaultOverload, "anthropic answered 503: upstream connect error"},
		{"overloaded", 529, problem("overloaded_error", "Overloaded"), nil, agent.FaultOverload, "anthropic answered 529: Overloaded"},
		{"nothing said", 529, "", nil, agent.FaultOverload, "anthropic answered 529: no reason given"},
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
	in := func(d time.Duration) string { return time.Now().UTC().Add(d).Format(time.RFC3339) }
	for _, c := range []struct {
		name    string
		headers []string
		want    time.Duration
	}{
		{"seconds", []string{"retry-after", "17"}, 17 * time.Second},
		{"the limit that is used up", []string{
			"anthropic-ratelimit-requests-remaining", "5", "anthropic-ratelimit-requests-reset", in(time.Hour),
			"anthropic-ratelimit-input-tokens-remaining", "0", "anthropic-ratelimit-input-tokens-reset", in(30 * time.Second),
		}, 30 * time.Second},
		{"the longest limit", []string{
			"anthropic-ratelimit-requests-remaining", "0", "anthropic-ratelimit-requests-reset", in(time.Minute),
			"anthropic-ratelimit-output-tokens-remaining", "0", "anthropic-ratelimit-output-tokens-reset", in(30 * time.Second),
			"anthropic-ratelimit-tokens-remaining", "0", "anthropic-ratelimit-tokens-reset", "soon",
		}, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, s := serve(t, standin.Answer(429, "application/json", problem("rate_limit_error", "slow down"), c.headers...))
			got := mustFail(t, m, s).RetryAfter
			if off := c.want - got; off < 0 || off > 5*time.Second { // dates have whole seconds, and the test takes time
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

var whole = stream(begin, ping, open(0, textBlock), text(0, "Hello"), stop(0),
	open(1, use("toolu_1", "weather")), input(1, `{"city":`), input(1, `"Rome"}`), stop(1), because("tool_use"), end)

func TestErrorInMidStream(t *testing.T) {
	for kind, want := range map[string]agent.FaultKind{
		"overloaded_error":      agent.FaultOverload,
		"rate_limit_error":      agent.FaultRateLimit,
		"api_error":             agent.FaultTransient,
		"invalid_request_error": agent.FaultBadRequest,
		"authentication_error":  agent.FaultAuth,
		"billing_error":         agent.FaultQuota,
		"new_error":             agent.FaultTransient,
	} {
		m, s := serve(t, standin.Drip(stream(begin, open(0, textBlock), text(0, "Hel"), problem(kind, "Overloaded"), text(0, "lo"), end), 0))
		fault := mustFail(t, m, s)
		if fault.Provider.Kind != want || fault.Message != "anthropic broke off its reply: Overloaded ("+kind+")" {
			t.Errorf("%s: got %s: %s", kind, fault.Provider.Kind, fault.Message)
		}
	}
	m, s := serve(t, standin.Drip("event: message_start\ndata: {\"type\":\n\n", 0))
	if fault := mustFail(t, m, s); fault.Provider.Kind != agent.FaultTransient {
		t.Errorf("broken JSON: got %s", fault.Provider.Kind)
	}
}

func TestReach(t *testing.T) {
	standin.Unreachable(t, at, ask("Hello"), "ANTHROPIC_BASE_URL")
	standin.ClientTimeout(t, at, ask("Hello"), key)
	standin.Redirect(t, at, ask("Hello"), key)
	standin.WrongURLs(t, at, ask("Hello"))
}

func TestWrongPlace(t *testing.T) {
	m, s := serve(t, standin.Answer(200, "text/html; charset=utf-8", "<html>Welcome</html>"))
	if fault := mustFail(t, m, s); fault.Provider.Kind != agent.FaultBadRequest || !strings.Contains(fault.Message, "web page") {
		t.Errorf("a page: got %s: %s", fault.Provider.Kind, fault.Message)
	}
	m, s = serve(t, standin.Answer(404, "text/html", "<html>Nothing here</html>"))
	if fault := mustFail(t, m, s); fault.Provider.Kind != agent.FaultBadRequest || !strings.Contains(fault.Message, "is there such an API at 127.0.0.1:") {
		t.Errorf("no page: got %s: %s", fault.Provider.Kind, fault.Message)
	}
	m, s = serve(t, standin.Answer(200, "application/json", problem("overloaded_error", "Overloaded")))
	if fault := mustFail(t, m, s); fault.Provider.Kind != agent.FaultOverload {
		t.Errorf("a problem with status 200: got %s: %s", fault.Provider.Kind, fault.Message)
	}
	m, s = serve(t, standin.Answer(200, "application/json", `{"type":"mess`))
	if fault := mustFail(t, m, s); fault.Provider.Kind != agent.FaultTransient {
		t.Errorf("half a reply: got %s: %s", fault.Provider.Kind, fault.Message)
	}
}
