package gemini

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// problem is the provider's description of a failure (google.rpc.Status), in an answer's
// body or in a stream.
type problem struct {
	Code    int      `json:"code"`
	Message string   `json:"message"`
	Status  string   `json:"status"`
	Details []detail `json:"details"`
}

// detail has the fields that are used of several types of details.
type detail struct {
	Reason     string `json:"reason"`     // ErrorInfo
	RetryDelay string `json:"retryDelay"` // RetryInfo
	Violations []struct {
		QuotaID string `json:"quotaId"`
	} `json:"violations"` // QuotaFailure
}

// problemOf decodes a problem; nil if there is none. Some come as a list of one.
func problemOf(data []byte) *problem {
	var list []struct{ Error *problem }
	var one struct{ Error *problem }
	if json.Unmarshal(data, &list) == nil && len(list) > 0 {
		return list[0].Error
	}
	if json.Unmarshal(data, &one) != nil {
		return nil
	}
	return one.Error
}

// statuses are the HTTP statuses for the provider's names of them.
var statuses = map[string]int{
	"INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "OUT_OF_RANGE": 400, "UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403,
	"NOT_FOUND": 404, "ABORTED": 409, "RESOURCE_EXHAUSTED": 429, "INTERNAL": 500, "UNKNOWN": 500, "CANCELLED": 500,
	"UNAVAILABLE": 503, "DEADLINE_EXCEEDED": 504,
}

// Texts of messages for cases in which status and details say too little.
var (
	saysQuota   = []string{"enable billing", "billing account", "prepayment credits", "credits are depleted", "spending cap", "spend cap", "limit: 0,"}
	saysContext = []string{"exceeds the maximum number of tokens", "input token count", "context is too long", "maximum context length"}
	saysKey     = []string{"api key not valid", "api key expired", "api_key_invalid"}
)

// kind returns the kind of fault of a problem with an HTTP status.
func (p *problem) kind(status int) agent.FaultKind {
	// In a stream the answer's status is 200.
	if status < 400 {
		status = cmp.Or(statuses[p.Status], p.Code)
	}
	text := strings.ToLower(p.Message)
	says := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	reason := func(r string) bool {
		return slices.ContainsFunc(p.Details, func(d detail) bool { return d.Reason == r })
	}
	switch {
	// The provider answers 400 to a wrong key, which a person must correct.
	case status == 400 && (says(saysKey) || reason("API_KEY_INVALID")):
		return agent.FaultAuth
	// A daily limit is no rate limit: waiting some seconds does not help.
	case (status == 400 || status == 429) && says(saysQuota) || status == 429 && p.daily():
		return agent.FaultQuota
	case (status == 400 || status == 500) && says(saysContext):
		return agent.FaultContext
	}
	return model.KindOf(status)
}

// daily reports whether a daily limit is used up, which waiting does not cure.
func (p *problem) daily() bool {
	for _, d := range p.Details {
		for _, v := range d.Violations {
			if strings.Contains(v.QuotaID, "PerDay") {
				return true
			}
		}
	}
	return false
}

// wait returns how long a detail asks to wait; zero if it does not.
func (p *problem) wait() time.Duration {
	var longest time.Duration
	for _, d := range p.Details {
		if w, err := time.ParseDuration(d.RetryDelay); err == nil {
			longest = max(longest, w)
		}
	}
	return longest
}

// maxProblem is how much is read of an answer that is no reply, in bytes.
const maxProblem = 64 << 10

// refused returns the fault of an answer that is no reply.
func (m *Model) refused(res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxProblem)) // the part that arrived is enough
	p, hint := problemOf(body), ""
	text := cmp.Or(http.StatusText(res.StatusCode), "no reason given")
	switch {
	case p != nil && p.Message != "":
		text = p.Message
	case len(body) > 0 && !strings.HasPrefix(strings.TrimSpace(string(body)), "<"):
		text = string(body)
	}
	// Without the provider's own form, the answer is probably from another server.
	if p == nil {
		hint = m.endpoint.WrongEndpoint(res, "")
	}
	if p == nil {
		p = &problem{Message: text}
	}
	kind := p.kind(res.StatusCode)
	switch {
	// A redirect or an empty answer will not change by itself.
	case res.StatusCode < 400:
		kind = agent.FaultBadRequest
	case kind == agent.FaultAuth && m.signIn != nil:
		hint = "; check the worker's identity and its permissions"
	case kind == agent.FaultAuth:
		hint = "; check " + envKey + " or " + envOtherKey + " on the worker"
	}
	after := model.RetryAfter(res.Header, time.Now(), p.wait())
	return m.endpoint.Faultf(kind, res.StatusCode, after, "%s answered %d: %s%s", m.name, res.StatusCode, text, hint)
}

// brokeOff returns the fault of a problem in the middle of a reply.
func (m *Model) brokeOff(status int, p *problem) error {
	text := cmp.Or(p.Message, "no reason given")
	if p.Status != "" {
		text += " (" + p.Status + ")"
	}
	return m.endpoint.Faultf(p.kind(0), status, model.RetryAfter(nil, time.Now(), p.wait()), "%s broke off its reply: %s", m.name, text)
}
