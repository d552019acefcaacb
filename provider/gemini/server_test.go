package gemini_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/gemini"
)

const key = "AIza-test-0123456789"

var silent, said, thought, call, result, assistant = standin.Silent, standin.Said, standin.Thought, standin.Called, standin.Result, standin.Assistant

// at makes a Model that asks elsewhere.
func at(base string, client *http.Client) model.Model {
	return gemini.New(&gemini.Options{APIKey: key, BaseURL: base, HTTPClient: client})
}

// serve starts a stand-in, and a Model that asks it.
func serve(t *testing.T, answer http.HandlerFunc) (model.Model, *standin.Server) {
	t.Helper()
	s := standin.Listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Query().Get("alt") != "sse" || r.URL.Query().Has("key") {
			t.Errorf("got %s %s", r.Method, r.URL)
		}
		answer(w, r)
	})
	return at(s.URL, nil), s
}

// stream is the provider's form of events: each is JSON in one line.
func stream(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		fmt.Fprintf(&b, "data: %s\r\n\r\n", c)
	}
	return b.String()
}

// chunk is an event with parts.
func chunk(parts ...string) string {
	return `{"candidates":[{"content":{"parts":[` + strings.Join(parts, ",") + `],"role":"model"},"index":0}],"modelVersion":"gemini-3.8-flash","responseId":"r1"}`
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a string always is JSON
	return string(b)
}

func text(s string) string { return `{"text":` + quoted(s) + `}` }

func thinks(s string) string { return `{"text":` + quoted(s) + `,"thought":true}` }

// signed puts a signature on a part.
func signed(part, signature string) string {
	return strings.TrimSuffix(part, "}") + `,"thoughtSignature":` + quoted(signature) + `}`
}

// calls is a part; fields that are empty are left out.
func calls(id, tool, arguments string) string {
	c := `{"name":` + quoted(tool)
	if id != "" {
		c += `,"id":` + quoted(id)
	}
	if arguments != "" {
		c += `,"args":` + arguments
	}
	return `{"functionCall":` + c + `}}`
}

func because(reason string) string {
	return `{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"` + reason + `","index":0}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":25,"totalTokenCount":35}}`
}

func ask(text string) *model.Request {
	return &model.Request{Model: "gemini-3.8-flash", Messages: []agent.Message{agent.TextMessage(agent.RoleUser, text)}}
}

// mustFail asks once, for a fault.
func mustFail(t *testing.T, m model.Model, s *standin.Server) *agent.Error {
	t.Helper()
	return s.Fails(t, m, ask("Hello"), key)
}
