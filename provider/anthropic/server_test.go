package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
)

const key = "sk-ant-test-0123456789"

// serve starts a stand-in, and a Model that asks it.
func serve(t *testing.T, answer http.HandlerFunc) (*anthropic.Model, *standin.Server) {
	t.Helper()
	s := standin.Listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v1/messages" {
			t.Errorf("got %s %s, want POST /v1/messages", r.Method, r.URL.Path)
		}
		answer(w, r)
	})
	return anthropic.New(&anthropic.Options{APIKey: key, BaseURL: s.URL}), s
}

// stream is the provider's form of events: each is JSON and names its type.
func stream(events ...string) string {
	var b strings.Builder
	for _, data := range events {
		var e struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			panic(fmt.Sprintf("%s: %v", data, err))
		}
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", e.Type, data)
	}
	return b.String()
}

var silent = standin.Silent

// at makes a Model that asks elsewhere.
func at(base string, client *http.Client) model.Model {
	return anthropic.New(&anthropic.Options{APIKey: key, BaseURL: base, HTTPClient: client})
}

func ask(text string) *model.Request {
	return &model.Request{Model: "claude-sonnet-5-5", Messages: []agent.Message{agent.TextMessage(agent.RoleUser, text)}}
}

// mustFail asks once, for a fault.
func mustFail(t *testing.T, m *anthropic.Model, s *standin.Server) *agent.Error {
	t.Helper()
	return s.Fails(t, m, ask("Hello"), key)
}
