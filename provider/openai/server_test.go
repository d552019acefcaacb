package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
)

const key = "sk-test-0123456789"

// standIn speaks for a server and keeps what it was sent.
type standIn struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]byte
	heads  []http.Header
	paths  []string
}

func listen(t *testing.T, answer http.HandlerFunc) *standIn {
	t.Helper()
	s := &standIn{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.bodies, s.heads, s.paths = append(s.bodies, body), append(s.heads, r.Header.Clone()), append(s.paths, r.URL.Path)
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// serve starts a stand-in for a compatible server, and a Model that asks it.
func serve(t *testing.T, answer http.HandlerFunc) (*openai.Model, *standIn) {
	t.Helper()
	s := listen(t, answer)
	return openai.New(&openai.Options{APIKey: key, BaseURL: s.URL + "/v1"}), s
}

// serveResponses is serve for the other form.
func serveResponses(t *testing.T, answer http.HandlerFunc) (*openai.Model, *standIn) {
	t.Helper()
	s := listen(t, answer)
	return openai.New(&openai.Options{APIKey: key, BaseURL: s.URL + "/v1", API: openai.Responses}), s
}

// detour sends what is meant for OpenAI to a stand-in.
func detour(s *standIn) *http.Client {
	to, err := url.Parse(s.URL)
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

func (s *standIn) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

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

// dripOn answers in two parts, the second after going is closed.
func dripOn(first string, going <-chan struct{}, second string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		dripping(first, 0)(w, r)
		select {
		case <-going:
			dripping(second, 0)(w, r)
		case <-r.Context().Done():
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
	return &model.Request{Model: "llama", Messages: []agent.Message{agent.TextMessage(agent.RoleUser, text)}}
}

// mustFail asks once, and returns the fault after checking what is true of all of them.
func mustFail(t *testing.T, m *openai.Model, s *standIn) *agent.Error {
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

func generate(t *testing.T, m *openai.Model, req *model.Request) (*model.Reply, *heard) {
	t.Helper()
	h := &heard{}
	reply, err := m.Generate(t.Context(), req, h.emit)
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

// check compares a reply, and what was emitted of it.
func check(t *testing.T, how string, got, want *model.Reply, h *heard) {
	t.Helper()
	if g, w := asJSON(t, got), asJSON(t, want); g != w {
		t.Errorf("%s: got %s\nwant %s", how, g, w)
	}
	var text, thinking string
	for _, p := range want.Parts {
		switch p.Type {
		case agent.PartText:
			text += p.Text
		case agent.PartThinking:
			thinking += p.Text
		}
	}
	if s := h.text.String(); s != text {
		t.Errorf("%s: emitted %q, want %q", how, s, text)
	}
	if s := h.thinking.String(); s != thinking {
		t.Errorf("%s: emitted the thinking %q, want %q", how, s, thinking)
	}
	if h.signs == 0 {
		t.Errorf("%s: there was no sign of life", how)
	}
}

func said(s string) agent.Part { return agent.Part{Type: agent.PartText, Text: s} }
