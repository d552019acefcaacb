package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
)

const key = "sk-test-0123456789"

// serve starts a stand-in for a compatible server, and a Model that asks it.
func serve(t *testing.T, answer http.HandlerFunc) (*openai.Model, *standin.Server) {
	t.Helper()
	s := standin.Listen(t, answer)
	return openai.New(&openai.Options{APIKey: key, BaseURL: s.URL + "/v1"}), s
}

// serveResponses is serve for the other form.
func serveResponses(t *testing.T, answer http.HandlerFunc) (*openai.Model, *standin.Server) {
	t.Helper()
	s := standin.Listen(t, answer)
	return openai.New(&openai.Options{APIKey: key, BaseURL: s.URL + "/v1", API: openai.Responses}), s
}

// detour sends what is meant for OpenAI to a stand-in.
func detour(base string) *http.Client {
	to, err := url.Parse(base)
	if err != nil {
		panic(err)
	}
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.URL.Scheme, r.URL.Host, r.Host = to.Scheme, to.Host, ""
		return http.DefaultTransport.RoundTrip(r)
	})}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// stream is the form of chunks: data and no more.
func stream(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		fmt.Fprintf(&b, "data: %s\n\n", c)
	}
	return b.String()
}

// events is the form of Responses: each is JSON and names its type.
func events(list ...string) string {
	var b strings.Builder
	for _, data := range list {
		var e struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			panic(fmt.Sprintf("%s: %v", data, err))
		}
		var line bytes.Buffer
		if err := json.Compact(&line, []byte(data)); err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", e.Type, &line)
	}
	return b.String()
}

var silent = standin.Silent

// at makes a Model that asks elsewhere.
func at(base string, client *http.Client) model.Model {
	return openai.New(&openai.Options{APIKey: key, BaseURL: base, HTTPClient: client})
}

func ask(text string) *model.Request {
	return &model.Request{Model: "llama", Messages: []agent.Message{agent.TextMessage(agent.RoleUser, text)}}
}

// mustFail asks once, for a fault.
func mustFail(t *testing.T, m *openai.Model, s *standin.Server) *agent.Error {
	t.Helper()
	return s.Fails(t, m, ask("Hello"), key)
}
