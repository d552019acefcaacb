package gemini_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/provider/gemini"
)

func problem(code, status, message, details string) string {
	return `{"error":{"code":` + code + `,"message":` + quoted(message) + `,"status":"` + status + `","details":[` + details + `]}}`
}

const (
	retryInfo = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}`
	perDay    = `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinute"},{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}`
	badKey    = `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}`
)

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int
		body    string
		kind    agent.FaultKind
		message string
	}{
		{"bad request", 400, problem("400", "INVALID_ARGUMENT", "Unknown name \"x\"", ""), agent.FaultBadRequest, `gemini answered 400: Unknown name "x"`},
		{"no signature", 400, problem("400", "INVALID_ARGUMENT", "Function call is missing a thought_signature in functionCall parts.", ""), agent.FaultBadRequest, ""},
		{"wrong key", 400, problem("400", "INVALID_ARGUMENT", "API key not valid: "+key, badKey), agent.FaultAuth, "gemini answered 400: API key not valid: [secret]; check GEMINI_API_KEY or GOOGLE_API_KEY on the worker"},
		{"not allowed", 403, problem("403", "PERMISSION_DENIED", "no", ""), agent.FaultAuth, ""},
		{"no billing", 400, problem("400", "FAILED_PRECONDITION", "Please enable billing on your project.", ""), agent.FaultQuota, ""},
		{"prompt too long", 400, problem("400", "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", ""), agent.FaultContext, ""},
		{"unknown model", 404, problem("404", "NOT_FOUND", "models/x is not found for API version v1beta", ""), agent.FaultBadRequest, "gemini answered 404: models/x is not found for API version v1beta"},
		{"rate limit", 429, problem("429", "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", retryInfo), agent.FaultRateLimit, ""},
		{"rate limit of tokens", 429, problem("429", "RESOURCE_EXHAUSTED", "Quota exceeded for metric: input token count", ""), agent.FaultRateLimit, ""},
		{"no more today", 429, problem("429", "RESOURCE_EXHAUSTED", "You exceeded your current quota", perDay+","+retryInfo), agent.FaultQuota, ""},
		{"none at all", 429, problem("429", "RESOURCE_EXHAUSTED", "Quota exceeded for metric: free_tier_requests, limit: 0, model: x", ""), agent.FaultQuota, ""},
		{"no credit", 429, problem("429", "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted.", ""), agent.FaultQuota, ""},
		{"broken", 500, problem("500", "INTERNAL", "An internal error has occurred.", ""), agent.FaultTransient, ""},
		{"broken by its length", 500, problem("500", "INTERNAL", "Your input context is too long.", ""), agent.FaultContext, ""},
		{"overloaded", 503, problem("503", "UNAVAILABLE", "The model is overloaded.", ""), agent.FaultOverload, "gemini answered 503: The model is overloaded."},
		{"too slow", 504, problem("504", "DEADLINE_EXCEEDED", "late", ""), agent.FaultTransient, ""},
		{"a list", 400, "[" + problem("400", "INVALID_ARGUMENT", "two\nlines", "") + "]", agent.FaultBadRequest, "gemini answered 400: two lines"},
		{"gateway's page", 502, "<html>\n<h1>Bad\nGateway</h1></html>", agent.FaultTransient, "gemini answered 502: Bad Gateway"},
		{"gateway's text", 503, "upstream\nconnect error", agent.FaultOverload, "gemini answered 503: upstream connect error"},
		{"nothing said", 529, "", agent.FaultOverload, "gemini answered 529: no reason given"},
		{"no page", 404, "<html>Nothing here</html>", agent.FaultBadRequest, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, s := serve(t, standin.Answer(c.status, "application/json", c.body))
			fault := mustFail(t, m, s)
			require.Equal(t, c.kind, fault.Provider.Kind, fault.Message)
			require.Equal(t, c.status, fault.Provider.HTTP)
			if c.message != "" {
				require.Equal(t, c.message, fault.Message)
			}
		})
	}
}

// How headers of all providers are read is tested in package model.
func TestRetryAfter(t *testing.T) {
	body := problem("429", "RESOURCE_EXHAUSTED", "slow down", retryInfo)
	m, s := serve(t, standin.Answer(429, "application/json", body))
	require.Equal(t, 34500*time.Millisecond, mustFail(t, m, s).RetryAfter)
	m, s = serve(t, standin.Answer(429, "application/json", body, "retry-after", "17"))
	require.Equal(t, 17*time.Second, mustFail(t, m, s).RetryAfter)
	m, s = serve(t, standin.Drip(stream(chunk(text("Hel")), body), 0))
	require.Equal(t, 34500*time.Millisecond, mustFail(t, m, s).RetryAfter, "in the midst of a reply")
}

func TestErrorInMidStream(t *testing.T) {
	for data, want := range map[string]struct {
		kind    agent.FaultKind
		message string
	}{
		problem("503", "UNAVAILABLE", "Overloaded", ""):              {agent.FaultOverload, "gemini broke off its reply: Overloaded (UNAVAILABLE)"},
		problem("429", "RESOURCE_EXHAUSTED", "Slow down", ""):        {agent.FaultRateLimit, ""},
		problem("429", "RESOURCE_EXHAUSTED", "No more", perDay):      {agent.FaultQuota, ""},
		problem("499", "CANCELLED", "Cancelled", ""):                 {agent.FaultTransient, ""},
		problem("400", "INVALID_ARGUMENT", "API key not valid.", ""): {agent.FaultAuth, ""},
		`{"error":{"code":500}}`:                                     {agent.FaultTransient, "gemini broke off its reply: no reason given"},
		because("MALFORMED_FUNCTION_CALL"):                           {agent.FaultTransient, "gemini broke off its reply: the model was stopped (MALFORMED_FUNCTION_CALL)"},
		because("OTHER"):                                             {agent.FaultTransient, ""},
		`{"candidates":`:                                             {agent.FaultTransient, ""},
	} {
		m, s := serve(t, standin.Drip(stream(chunk(text("Hel")), data, chunk(text("lo")), because("STOP")), 0))
		fault := mustFail(t, m, s)
		require.Equal(t, want.kind, fault.Provider.Kind, data)
		require.Equal(t, 200, fault.Provider.HTTP, data)
		if want.message != "" {
			require.Equal(t, want.message, fault.Message)
		}
	}
}

func TestWrongPlace(t *testing.T) {
	m, s := serve(t, standin.Answer(200, "text/html; charset=utf-8", "<html>Welcome</html>"))
	fault := mustFail(t, m, s)
	require.Equal(t, agent.FaultBadRequest, fault.Provider.Kind)
	require.Contains(t, fault.Message, "web page")
	m, s = serve(t, standin.Answer(404, "text/html", "<html>Nothing here</html>"))
	require.Contains(t, mustFail(t, m, s).Message, "is there such an API at 127.0.0.1:")
	for body, kind := range map[string]agent.FaultKind{
		problem("503", "UNAVAILABLE", "Overloaded", ""):         agent.FaultOverload,
		"[" + problem("401", "UNAUTHENTICATED", "no", "") + "]": agent.FaultAuth,
		`{"candidates":[`: agent.FaultTransient,
		`{}`:              agent.FaultTransient,
		`[]`:              agent.FaultTransient,
	} {
		m, s = serve(t, standin.Answer(200, "application/json", body))
		require.Equal(t, kind, mustFail(t, m, s).Provider.Kind, body)
	}
}

func TestName(t *testing.T) {
	_, s := serve(t, standin.Answer(403, "application/json", problem("403", "PERMISSION_DENIED", "no", "")))
	m := gemini.New(&gemini.Options{APIKey: key, BaseURL: s.URL, Name: "google"})
	require.Contains(t, mustFail(t, m, s).Message, "google answered 403")
}
