package bedrock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
)

// contextUntil is over as soon as a channel is closed.
func contextUntil(t *testing.T, over <-chan struct{}) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		select {
		case <-over:
		case <-ctx.Done():
		}
		cancel()
	}()
	return ctx, cancel
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name      string
		status    int
		exception string
		says      string
		kind      agent.FaultKind
		message   string
	}{
		{"bad request", 400, "ValidationException", "The model returned the following errors: messages.0: no", agent.FaultBadRequest, "bedrock answered 400: The model returned the following errors: messages.0: no"},
		{"no profile", 400, "ValidationException", "Invocation of model ID anthropic.claude-sonnet-5-5 with on-demand throughput isn't supported. Retry your request with the ID or ARN of an inference profile", agent.FaultBadRequest, ""},
		{"too long", 400, "ValidationException", "Input is too long for requested model.", agent.FaultContext, ""},
		{"too long for Claude", 400, "ValidationException", "The model returned the following errors: prompt is too long: 210000 tokens > 200000 maximum", agent.FaultContext, ""},
		{"too long for Nova", 400, "ValidationException", "Too many input tokens. Max input tokens: 300000, request input token count: 310000", agent.FaultContext, ""},
		{"no access", 403, "AccessDeniedException", "You don't have access to the model with the specified model ID.", agent.FaultAuth, "bedrock answered 403: You don't have access to the model with the specified model ID.; check the worker's AWS credentials and what they may do, or AWS_BEARER_TOKEN_BEDROCK"},
		{"nothing to pay with", 403, "AccessDeniedException", "Model access is denied due to INVALID_PAYMENT_INSTRUMENT: A valid payment instrument must be provided.", agent.FaultQuota, ""},
		{"wrong key", 403, "UnrecognizedClientException", "The security token included in the request is invalid.", agent.FaultAuth, ""},
		{"an old token with another status", 400, "ExpiredTokenException", "The security token included in the request is expired", agent.FaultAuth, ""},
		{"unknown model", 404, "ResourceNotFoundException", "Could not resolve the foundation model", agent.FaultBadRequest, ""},
		{"timeout", 408, "ModelTimeoutException", "Model has timed out in processing the request.", agent.FaultTimeout, ""},
		{"model error", 424, "ModelErrorException", "The system encountered an unexpected error during processing.", agent.FaultTransient, ""},
		{"throttled", 429, "ThrottlingException", "Too many requests, please wait before trying again.", agent.FaultRateLimit, ""},
		{"the day's tokens", 429, "ThrottlingException", "Too many tokens per day, please wait before trying again.", agent.FaultQuota, ""},
		{"not ready", 429, "ModelNotReadyException", "Model is not ready for inference.", agent.FaultOverload, ""},
		{"quota", 400, "ServiceQuotaExceededException", "Your request exceeds the service quota for your account.", agent.FaultQuota, ""},
		{"down", 503, "ServiceUnavailableException", "Bedrock is unable to process your request.", agent.FaultOverload, ""},
		{"new exception", 400, "NewException", "something new", agent.FaultBadRequest, "bedrock answered 400: something new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, s := serve(t, standin.Answer(c.status, "application/json", fmt.Sprintf(`{"message":%q}`, c.says),
				"X-Amzn-Errortype", c.exception+":http://internal.amazon.com/", "Retry-After", "17"))
			fault := s.Fails(t, m, ask("Hello"), token)
			require.Equal(t, c.kind, fault.Provider.Kind)
			require.Equal(t, c.status, fault.Provider.HTTP)
			require.Equal(t, 17*time.Second, fault.RetryAfter)
			if c.message != "" {
				require.Equal(t, c.message, fault.Message)
			}
		})
	}
	m, s := serve(t, standin.Answer(400, "application/json", `{"Message":"no"}`, "X-Amzn-Requestid", "req-7"))
	require.Equal(t, "bedrock answered 400: no (req-7)", s.Fails(t, m, ask("Hello"), token).Message)
}

func TestErrorInMidStream(t *testing.T) {
	for kind, want := range map[string]agent.FaultKind{
		"throttlingException": agent.FaultRateLimit, "modelStreamErrorException": agent.FaultTransient, "internalServerException": agent.FaultTransient,
		"serviceUnavailableException": agent.FaultOverload, "validationException": agent.FaultBadRequest, "newException": agent.FaultTransient,
	} {
		m, s := serve(t, streams(begin, text(0, "Hel"), exception(kind, "It broke."), text(0, "lo"), used))
		fault := s.Fails(t, m, ask("Hello"), token)
		require.Equal(t, want, fault.Provider.Kind, kind)
		require.Equal(t, "bedrock broke off its reply: It broke. ("+kind+")", fault.Message)
	}
	m, s := serve(t, streams(begin, encode("", ":message-type", "error", ":error-code", "InternalFailure", ":error-message", "An internal server error occurred")))
	require.Equal(t, "bedrock broke off its reply: An internal server error occurred (InternalFailure)", s.Fails(t, m, ask("Hello"), token).Message)
}

// A stream that is damaged, or ends before the usage has come, is to be asked for again.
func TestBrokenStreams(t *testing.T) {
	good := strings.Join(whole, "")
	flipped := []byte(good)
	flipped[len(flipped)/2] ^= 1
	for name, body := range map[string]string{
		"nothing": "", "half a frame": good[:len(begin)+20], "without the usage": good[:len(good)-len(used)], "another byte": string(flipped),
		"not frames": "data: {}\n\n", "no JSON": frame("contentBlockDelta", "{"), "an endless frame": "\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		m, s := serve(t, streams(body))
		require.Equal(t, agent.FaultTransient, s.Fails(t, m, ask("Hello"), token).Provider.Kind, name)
	}
	m, s := serve(t, standin.Answer(200, "text/html", "<html>Welcome</html>"))
	fault := s.Fails(t, m, ask("Hello"), token)
	require.Equal(t, agent.FaultBadRequest, fault.Provider.Kind)
	require.Contains(t, fault.Message, "web page")
	m, s = serve(t, standin.Answer(404, "text/html", "<html>Nothing here</html>"))
	require.Contains(t, s.Fails(t, m, ask("Hello"), token).Message, "is there such an API at 127.0.0.1:")
	m, s = serve(t, streams(begin, text(0, "I call"), because("malformed_tool_use"), used))
	require.Equal(t, agent.FaultTransient, s.Fails(t, m, ask("Hello"), token).Provider.Kind)
}
