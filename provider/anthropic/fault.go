package anthropic

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// problem is the provider's description of a failure, in an answer's body or in a stream.
type problem struct {
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Details struct {
			Code string `json:"error_code"`
		} `json:"details"`
	} `json:"error"`
	RequestID string `json:"request_id"`
}

// statuses are the HTTP statuses for the types of problems: a stream has no status of its
// own.
var statuses = map[string]int{
	"invalid_request_error": 400,
	"authentication_error":  401,
	"billing_error":         402,
	"permission_error":      403,
	"not_found_error":       404,
	"conflict_error":        409,
	"request_too_large":     413,
	"rate_limit_error":      429,
	"api_error":             500,
	"timeout_error":         504,
	"overloaded_error":      529,
}

// Texts of messages for cases in which status and type say too little.
var (
	saysQuota   = []string{"credit balance is too low", "specified api usage limits", "spend limit"}
	saysContext = []string{"prompt is too long", "exceed context limit", "exceeds the context window", "context window exceeded", "maximum context length", "context_length_exceeded"}
)

// kind returns the kind of fault of a problem with an HTTP status.
func (p *problem) kind(status int) agent.FaultKind {
	text := strings.ToLower(p.Error.Message)
	// In a stream the answer's status is 200, so the problem's type must do.
	if status < 400 {
		status = statuses[p.Error.Type]
	}
	switch {
	// The code is exact; texts may change.
	case p.Error.Details.Code == "enforced_spend_limit_reached":
		return agent.FaultQuota
	case status == 400 && containsAny(text, saysQuota):
		return agent.FaultQuota
	// A rate limit may mention tokens, too.
	case status != 429 && containsAny(text, saysContext):
		return agent.FaultContext
	}
	return model.KindOf(status)
}

// refused returns the fault of an answer that is no reply.
func (m *Model) refused(res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxProblem)) // the part that arrived is enough
	var p problem
	text, hint := cmp.Or(http.StatusText(res.StatusCode), "no reason given"), ""
	switch {
	case json.Unmarshal(body, &p) == nil && p.Error.Message != "":
		text = p.Error.Message
	// A page of HTML says nothing that helps.
	case len(body) > 0 && !strings.HasPrefix(strings.TrimSpace(string(body)), "<"):
		text = string(body)
	}
	// Without the provider's own form, the answer is probably from another server.
	if p.Error.Type == "" {
		hint = m.endpoint.WrongEndpoint(res, "")
	}
	kind := p.kind(res.StatusCode)
	switch {
	// A redirect or an empty answer will not change by itself.
	case res.StatusCode < 400:
		kind = agent.FaultBadRequest
	case kind == agent.FaultAuth && m.signIn != nil:
		hint = "; check the worker's identity and its permissions"
	case kind == agent.FaultAuth:
		hint = "; check " + envKey + " on the worker"
	}
	// Support needs the id to find the request.
	if id := res.Header.Get("request-id"); id != "" {
		text += " (" + id + ")"
	}
	now := time.Now()
	after := model.RetryAfter(res.Header, now, resets(res.Header, now)...)
	return m.endpoint.Faultf(kind, res.StatusCode, after, "%s answered %d: %s%s", m.name, res.StatusCode, text, hint)
}

// maxProblem is how much is read of an answer that is no reply, in bytes.
const maxProblem = 64 << 10

// brokeOff returns the fault of a problem in the middle of a reply.
func (m *Model) brokeOff(status int, data []byte) error {
	var p problem
	if json.Unmarshal(data, &p) != nil || p.Error.Message == "" {
		p.Error.Message = string(data)
	}
	return m.endpoint.Faultf(p.kind(0), status, 0, "%s broke off its reply: %s (%s)", m.name, p.Error.Message, p.Error.Type)
}

// resets returns how long it takes until the used-up limits are full again.
func resets(h http.Header, now time.Time) []time.Duration {
	var all []time.Duration
	for _, limit := range []string{"requests", "tokens", "input-tokens", "output-tokens"} {
		// Only a limit that is used up explains the refusal.
		if h.Get("anthropic-ratelimit-"+limit+"-remaining") != "0" {
			continue
		}
		if t, err := time.Parse(time.RFC3339, h.Get("anthropic-ratelimit-"+limit+"-reset")); err == nil {
			all = append(all, t.Sub(now))
		}
	}
	return all
}

func containsAny(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
