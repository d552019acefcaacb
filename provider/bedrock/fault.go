package bedrock

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// kinds are the kinds of the provider's exceptions. An answer's status says less, and a
// stream has none.
var kinds = map[string]agent.FaultKind{
	"accessdeniedexception": agent.FaultAuth, "unrecognizedclientexception": agent.FaultAuth, "expiredtokenexception": agent.FaultAuth,
	"expiredtoken": agent.FaultAuth, "invalidsignatureexception": agent.FaultAuth, "missingauthenticationtokenexception": agent.FaultAuth,
	"incompletesignatureexception": agent.FaultAuth, "invalidclienttokenid": agent.FaultAuth, "optinrequired": agent.FaultAuth,
	"throttlingexception": agent.FaultRateLimit, "servicequotaexceededexception": agent.FaultQuota,
	"serviceunavailableexception": agent.FaultOverload, "modelnotreadyexception": agent.FaultOverload,
	"modeltimeoutexception": agent.FaultTimeout, "modelerrorexception": agent.FaultTransient, "modelstreamerrorexception": agent.FaultTransient,
	"internalserverexception": agent.FaultTransient, "internalfailure": agent.FaultTransient, "conflictexception": agent.FaultTransient,
	"validationexception": agent.FaultBadRequest, "resourcenotfoundexception": agent.FaultBadRequest,
}

// Texts of messages for cases in which the exception says too little.
var (
	saysQuota   = []string{"tokens per day", "requests per day", "payment_instrument", "payment instrument"}
	saysContext = []string{"input is too long", "prompt is too long", "too many input tokens", "exceed context limit", "exceeds the context window",
		"maximum context length", "context_length_exceeded", "input tokens exceeded", "exceeds the maximum number of tokens", "maximum number of input tokens"}
)

// kindOf returns the kind of a problem by its exception, its message and its status.
func kindOf(exception, message string, status int) agent.FaultKind {
	text := strings.ToLower(message)
	says := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	kind, known := kinds[strings.ToLower(exception)]
	if !known {
		// Unknown exceptions are sorted by status.
		kind = model.KindOf(status)
	}
	switch {
	case (kind == agent.FaultRateLimit || kind == agent.FaultAuth) && says(saysQuota):
		return agent.FaultQuota
	case (kind == agent.FaultBadRequest || kind == agent.FaultTransient) && says(saysContext):
		return agent.FaultContext
	}
	return kind
}

// maxProblem is how much is read of an answer that is no reply, in bytes.
const maxProblem = 64 << 10

// refused returns the fault of an answer that is no reply.
func (c call) refused(res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxProblem)) // the part that arrived is enough
	// The header may have a URL after the name.
	exception, _, _ := strings.Cut(res.Header.Get("X-Amzn-Errortype"), ":")
	text, hint := cmp.Or(http.StatusText(res.StatusCode), "no reason given"), ""
	switch message := messageOf(body); {
	case message != "":
		text = message
	case len(body) > 0 && !strings.HasPrefix(strings.TrimSpace(string(body)), "<"):
		text = string(body)
	}
	if exception == "" {
		hint = c.WrongEndpoint(res, "")
	}
	kind := kindOf(exception, text, res.StatusCode)
	switch {
	// A redirect or an empty answer will not change by itself.
	case res.StatusCode < 400:
		kind = agent.FaultBadRequest
	case kind == agent.FaultAuth:
		hint = "; check the worker's AWS credentials and what they may do, or " + envKey
		// Expired credentials may be in the cache; the next call must not use them again.
		c.forget()
	}
	if id := res.Header.Get("X-Amzn-Requestid"); id != "" {
		text += " (" + id + ")"
	}
	after := model.RetryAfter(res.Header, time.Now())
	return c.Faultf(kind, res.StatusCode, after, "%s answered %d: %s%s", c.name, res.StatusCode, text, hint)
}

// messageOf returns the message of a problem; empty if it is not the provider's.
func messageOf(body []byte) string {
	var p struct {
		Message string `json:"message"` // or "Message"
	}
	if json.Unmarshal(body, &p) != nil {
		return ""
	}
	return p.Message
}

// brokeOff returns the fault of a problem in the middle of a reply.
func (c call) brokeOff(status int, frame eventstream.Message) error {
	exception := cmp.Or(header(frame, eventstreamapi.ExceptionTypeHeader), header(frame, eventstreamapi.ErrorCodeHeader))
	text := cmp.Or(messageOf(frame.Payload), header(frame, eventstreamapi.ErrorMessageHeader), string(frame.Payload), "no reason given")
	return c.Faultf(kindOf(exception, text, 0), status, 0, "%s broke off its reply: %s (%s)", c.name, text, cmp.Or(exception, "error"))
}
