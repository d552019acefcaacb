package bedrock_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/bedrock"
)

const (
	region = "eu-central-1"
	secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	token  = "FwoGZXIvYXdzEBYaDExampleSessionToken" // goes with every request, and is a secret
	sonnet = "eu.anthropic.claude-sonnet-5-5"
)

var silent = standin.Silent

// options have credentials that nobody has to fetch.
func options(base, session string, client *http.Client) *bedrock.Options {
	return &bedrock.Options{
		Region: region, BaseURL: base, HTTPClient: client,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", secret, session),
	}
}

// at makes a Model that asks elsewhere.
func at(base string, client *http.Client) model.Model {
	return bedrock.New(options(base, token, client))
}

// serve starts a stand-in, and a Model that asks it.
func serve(t *testing.T, answer http.HandlerFunc) (model.Model, *standin.Server) {
	t.Helper()
	s := standin.Listen(t, answer)
	return at(s.URL, nil), s
}

// streams answers with events.
func streams(events ...string) http.HandlerFunc {
	return standin.Answer(http.StatusOK, "application/vnd.amazon.eventstream", strings.Join(events, ""))
}

// frame is an event of the stream.
func frame(kind, payload string) string {
	return encode(payload, ":message-type", "event", ":event-type", kind, ":content-type", "application/json")
}

// exception is a problem in the stream.
func exception(kind, message string) string {
	return encode(fmt.Sprintf(`{"message":%q}`, message), ":message-type", "exception", ":exception-type", kind, ":content-type", "application/json")
}

// encode is a frame; headers are names and values in turn.
func encode(payload string, headers ...string) string {
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i+1 < len(headers); i += 2 {
		m.Headers.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		panic(err)
	}
	return b.String()
}

var (
	begin = frame("messageStart", `{"role":"assistant"}`)
	used  = frame("metadata", `{"usage":{"inputTokens":10,"outputTokens":25,"totalTokens":35},"metrics":{"latencyMs":7}}`)
)

func delta(index int, format string, args ...any) string {
	return frame("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":%s,"p":"abcdef"}`, index, fmt.Sprintf(format, args...)))
}

func text(index int, words string) string { return delta(index, `{"text":%q}`, words) }
func thinking(index int, words string) string {
	return delta(index, `{"reasoningContent":{"text":%q}}`, words)
}
func signature(index int, mark string) string {
	return delta(index, `{"reasoningContent":{"signature":%q}}`, mark)
}
func input(index int, piece string) string { return delta(index, `{"toolUse":{"input":%q}}`, piece) }
func use(index int, id, tool string) string {
	return frame("contentBlockStart", fmt.Sprintf(`{"contentBlockIndex":%d,"start":{"toolUse":{"toolUseId":%q,"name":%q}}}`, index, id, tool))
}
func stop(index int) string {
	return frame("contentBlockStop", fmt.Sprintf(`{"contentBlockIndex":%d}`, index))
}
func because(reason string) string {
	return frame("messageStop", fmt.Sprintf(`{"stopReason":%q}`, reason))
}

var whole = []string{begin, text(0, "Hello"), stop(0), use(1, "tooluse_1", "weather"), input(1, `{"city":`), input(1, `"Rome"}`), stop(1), because("tool_use"), used}

func ask(text string) *model.Request {
	return &model.Request{Model: sonnet, Messages: []agent.Message{agent.TextMessage(agent.RoleUser, text)}}
}
