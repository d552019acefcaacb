package anthropic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
)

const key = "sk-ant-test-0123456789"

// standIn speaks for the provider and keeps what it was sent.
type standIn struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]byte
	heads  []http.Header
}

// serve starts a stand-in, and a Model that asks it.
func serve(t *testing.T, answer http.HandlerFunc) (*anthropic.Model, *standIn) {
	t.Helper()
	s := &standIn{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.bodies, s.heads = append(s.bodies, body), append(s.heads, r.Header.Clone())
		s.mu.Unlock()
		if r.Method != http.MethodPost || r.URL.Path != "/v1/messages" {
			t.Errorf("got %s %s, want POST /v1/messages", r.Method, r.URL.Path)
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return anthropic.New(&anthropic.Options{APIKey: key, BaseURL: s.URL}), s
}

func (s *standIn) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
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

// dripping answers with a stream in pieces of n bytes; all at once for zero.
func dripping(body string, n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "text/event-stream; charset=utf-8")
		if n == 0 {
			n = len(body)
		}
		for rest := []byte(body); len(rest) > 0; {
			piece := rest[:min(n, len(rest))]
			rest = rest[len(piece):]
			_, _ = w.Write(piece)
			w.(http.Flusher).Flush()
		}
	}
}

func answering(status int, contentType, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", contentType)
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// heard collects what is emitted.
type heard struct {
	text, thinking bytes.Buffer
	signs          int
}

func (h *heard) emit(d model.Delta) {
	h.text.WriteString(d.Text)
	h.thinking.WriteString(d.Thinking)
	if d == (model.Delta{}) {
		h.signs++
	}
}

func silent(model.Delta) {}

func ask(text string) *model.Request {
	return &model.Request{Model: "claude-sonnet-5-5", Messages: []agent.Message{agent.TextMessage(agent.RoleUser, text)}}
}

// mustFail asks once, and returns the fault after checking what is true of all of them.
func mustFail(t *testing.T, m *anthropic.Model, s *standIn) *agent.Error {
	t.Helper()
	before := s.requests()
	reply, err := m.Generate(t.Context(), ask("Hello"), silent)
	var fault *agent.Error
	if !errors.As(err, &fault) || fault.Provider == nil {
		t.Fatalf("got %+v, %v; want a fault", reply, err)
	}
	if n := s.requests() - before; n != 1 {
		t.Errorf("%d requests were made, want 1", n)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), key) {
		t.Errorf("the key is in %q", err)
	}
	if strings.ContainsAny(fault.Message, "\r\n") {
		t.Errorf("the message %q is longer than a line", fault.Message)
	}
	if fault.Retryable != fault.Provider.Kind.Retryable() {
		t.Errorf("retryable is %v for %s", fault.Retryable, fault.Provider.Kind)
	}
	return fault
}

func generate(t *testing.T, m *anthropic.Model, req *model.Request) (*model.Reply, *heard) {
	t.Helper()
	h := &heard{}
	reply, err := m.Generate(context.Background(), req, h.emit)
	if err != nil {
		t.Fatal(err)
	}
	return reply, h
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
