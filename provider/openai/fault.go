package openai

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// problem is a server's description of a failure, in an answer's body or in a stream.
type problem struct {
	code    string // a word, or a status
	kind    string
	message string
	flagged bool // it reports what a filter has found in the request
}

// problemOf decodes a problem in any of the servers' forms; nil if there is none. A
// message alone counts only in an answer that is no reply.
func problemOf(data []byte, answer bool) *problem {
	var list []json.RawMessage
	// Some servers wrap the problem in a list.
	if json.Unmarshal(data, &list) == nil && len(list) > 0 {
		data = list[0]
	}
	var top map[string]any
	if json.Unmarshal(data, &top) != nil {
		return nil
	}
	switch e := top["error"].(type) {
	case map[string]any:
		return problemIn(e)
	case string:
		return &problem{message: e, kind: word(top["error_type"])}
	}
	// In a stream, any event may have a message; only marked ones are problems.
	if answer || top["object"] == "error" || top["type"] == "error" {
		return problemIn(top)
	}
	return nil
}

func problemIn(m map[string]any) *problem {
	p := &problem{code: word(m["code"]), kind: word(m["type"]), message: cmp.Or(word(m["message"]), word(m["detail"]))}
	// OpenRouter only says "Provider returned error"; the provider's own message is
	// below.
	if meta, ok := m["metadata"].(map[string]any); ok {
		if raw := word(meta["raw"]); raw != "" {
			p.message += ": " + raw
		}
		p.flagged = meta["reasons"] != nil || meta["flagged_input"] != nil
	}
	// A problem without a message still needs a text.
	if p.message == "" {
		p.message = cmp.Or(p.code, p.kind)
	}
	return p
}

// word returns a JSON value as text; empty for null.
func word(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	b, _ := json.Marshal(v) // it was JSON before
	return string(b)
}

// statuses are the HTTP statuses for the codes and types of problems: a stream has no
// status of its own.
var statuses = map[string]int{
	"invalid_request_error": 400, "invalid_prompt": 400, "BadRequestError": 400,
	"authentication_error": 401, "invalid_api_key": 401,
	"permission_error": 403,
	"not_found_error":  404, "model_not_found": 404,
	"rate_limit_error": 429, "rate_limit_exceeded": 429,
	"service_unavailable": 503, "service_unavailable_error": 503, "engine_overloaded": 503, "overloaded_error": 529, "slow_down": 503,
}

// Words that say more than a status.
var (
	quotaCodes   = []string{"insufficient_quota", "billing_not_active", "billing_hard_limit_reached"}
	contextCodes = []string{"context_length_exceeded", "exceed_context_size_error"}
	saysContext  = []string{"maximum context length", "context length exceeded", "exceeds the context length", "exceeds the available context size",
		"exceeds the context window", "exceed context window", "exceeds the maximum number of tokens", "maximum prompt length",
		"prompt is too long", "too large for model", "reduce the length of the messages", "input is too long",
		"context the overflows", "greater than the context length", "context overflow", "reached context length", // LM Studio
		"contextwindowexceedederror",                                                 // LiteLLM
		"`inputs` tokens + `max_new_tokens` must be", "`inputs` must have less than"} // Together, and TGI
	// What the model wrote was of no use to the server, and may be the next time (Groq).
	sampledCodes = []string{"tool_use_failed", "json_validate_failed"}
	refusedCodes = []string{"data_residency_mismatch", "content_filter"}
)

// policy are the ends of codes that mean that a policy forbids the request.
var policy = []string{"_policy", "policy_violation"}

// sort returns the kind of fault of a problem with an HTTP status.
func (p *problem) sort(status int) agent.FaultKind {
	// In a stream the answer's status is 200.
	if status < 400 {
		// Some servers send the status as the code.
		if status, _ = strconv.Atoi(p.code); status < 400 || status > 599 {
			status = cmp.Or(statuses[p.code], statuses[p.kind])
		}
	}
	text := strings.ToLower(p.message)
	says := func(words string) bool { return strings.Contains(text, words) }
	switch {
	// The filter refused the request; a retry would be refused, too.
	case p.flagged && status == http.StatusForbidden, slices.Contains(refusedCodes, p.code),
		slices.ContainsFunc(policy, func(end string) bool { return strings.HasSuffix(p.code, end) }):
		return agent.FaultBadRequest
	// The model wrote something useless, and may do better the next time.
	case slices.Contains(sampledCodes, p.code):
		return agent.FaultTransient
	case slices.Contains(quotaCodes, p.code) || slices.Contains(quotaCodes, p.kind):
		return agent.FaultQuota
	case slices.Contains(contextCodes, p.code) || slices.Contains(contextCodes, p.kind):
		return agent.FaultContext
	// Those three have their own meaning, whatever the text mentions.
	case status != 429 && status != 401 && status != 403 && slices.ContainsFunc(saysContext, says):
		return agent.FaultContext
	}
	return model.KindOf(status)
}

// baseVersion is the usual end of base URLs.
const baseVersion = "v1"

// refused returns the fault of an answer that is no reply.
func (m *Model) refused(res *http.Response) error {
	const most = 64 << 10
	body, _ := io.ReadAll(io.LimitReader(res.Body, most)) // the part that arrived is enough
	p, hint := problemOf(body, true), ""
	text := cmp.Or(http.StatusText(res.StatusCode), "no reason given")
	switch {
	case p != nil && p.message != "":
		text = p.message
	case p == nil && len(body) > 0 && !strings.HasPrefix(strings.TrimSpace(string(body)), "<"):
		text = string(body)
	}
	// Without a code or a type, the answer is probably not from a model's API.
	if p == nil || p.code == "" && p.kind == "" { // a model's problem has one
		hint = m.endpoint.WrongEndpoint(res, baseVersion)
	}
	if p == nil {
		p = &problem{message: text}
	}
	kind := p.sort(res.StatusCode)
	switch {
	// A redirect or an empty answer will not change by itself.
	case res.StatusCode < 400:
		kind = agent.FaultBadRequest
	case kind == agent.FaultAuth && m.signIn != nil:
		hint = "; check the worker's identity and its permissions"
	// Only then does the key come from this variable.
	case kind == agent.FaultAuth && m.own && m.name == defaultName:
		hint = "; check " + envKey + " on the worker"
	case kind == agent.FaultAuth && !m.keyed:
		hint = "; no key was sent, set one in the options of " + m.name
	case kind == agent.FaultAuth:
		hint = "; check the key of " + m.name + " on the worker"
	}
	if id := res.Header.Get("x-request-id"); id != "" {
		text += " (" + id + ")"
	}
	after := model.RetryAfter(res.Header, time.Now(), resets(res.Header)...)
	return m.endpoint.Faultf(kind, res.StatusCode, after, "%s answered %d: %s%s", m.name, res.StatusCode, text, hint)
}

// brokeOff returns the fault of a problem in the middle of a reply.
func (m *Model) brokeOff(status int, p *problem) error {
	text := p.message
	if word := cmp.Or(p.code, p.kind); word != "" && word != text {
		text += " (" + word + ")"
	}
	return m.endpoint.Faultf(p.sort(0), status, 0, "%s broke off its reply: %s", m.name, text)
}

// resets returns how long it takes until the used-up limits are full again.
func resets(h http.Header) []time.Duration {
	var all []time.Duration
	for _, limit := range []string{"requests", "tokens"} {
		// Only a limit that is used up explains the refusal.
		if h.Get("x-ratelimit-remaining-"+limit) != "0" {
			continue
		}
		if d, err := time.ParseDuration(h.Get("x-ratelimit-reset-" + limit)); err == nil {
			all = append(all, d)
		}
	}
	return all
}
