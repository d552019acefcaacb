package standin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Server stands in for a provider and keeps what it received, one entry a request. Read
// the entries only while no request is in progress.
type Server struct {
	*httptest.Server
	Bodies [][]byte
	Heads  []http.Header
	Paths  []string

	mu sync.Mutex
}

// Listen starts a server for a test.
func Listen(t *testing.T, answer http.HandlerFunc) *Server {
	t.Helper()
	s := &Server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A gRPC client of another test's process may still look for its server at a port
		// that is free again, and is this server's now. No adapter speaks HTTP/2 in clear.
		if r.ProtoMajor != 1 {
			w.WriteHeader(http.StatusHTTPVersionNotSupported)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.Bodies, s.Heads, s.Paths = append(s.Bodies, body), append(s.Heads, r.Header.Clone()), append(s.Paths, r.URL.Path)
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// Requests returns how many requests there were.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.Bodies)
}

// Drip answers with a stream in pieces of n bytes, or all at once if n is 0.
func Drip(body string, n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "text/event-stream; charset=utf-8")
		size := n
		if n == 0 {
			size = len(body)
		}
		for rest := []byte(body); len(rest) > 0; {
			piece := rest[:min(size, len(rest))]
			rest = rest[len(piece):]
			_, _ = w.Write(piece)
			w.(http.Flusher).Flush()
		}
	}
}

// Answer answers with a body; headers are names and values in turn.
func Answer(status int, contentType, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", contentType)
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Ear collects what is emitted. Signs counts the empty pieces.
type Ear struct {
	Text, Thinking strings.Builder
	Signs          int
}

// Emit is the function to pass to Generate.
func (e *Ear) Emit(d model.Delta) {
	e.Text.WriteString(d.Text)
	e.Thinking.WriteString(d.Thinking)
	if d == (model.Delta{}) {
		e.Signs++
	}
}

// Reply asks and returns the reply; an error ends the test.
func Reply(t *testing.T, m model.Model, req *model.Request) (*model.Reply, *Ear) {
	t.Helper()
	e := &Ear{}
	reply, err := m.Generate(t.Context(), req, e.Emit)
	if err != nil {
		t.Fatal(err)
	}
	return reply, e
}

// Same compares a reply and what was emitted of it. If the reply was filtered, its text
// may be the provider's explanation, which was not emitted.
func Same(t *testing.T, how string, got, want *model.Reply, e *Ear) {
	plain := *got
	plain.ProviderModel, got = "", &plain
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
	if s := e.Text.String(); s != text && want.Finish != model.FinishContentFilter {
		t.Errorf("%s: emitted %q, want %q", how, s, text)
	}
	if s := e.Thinking.String(); s != thinking {
		t.Errorf("%s: emitted the thinking %q, want %q", how, s, thinking)
	}
	if e.Signs == 0 {
		t.Errorf("%s: there was no sign of life", how)
	}
}

// Fails asks once and expects an error. It checks what is true of all of them: one
// request, one line, and the key nowhere.
func (s *Server) Fails(t *testing.T, m model.Model, req *model.Request, key string) *agent.Error {
	t.Helper()
	before := s.Requests()
	reply, err := m.Generate(t.Context(), req, func(model.Delta) {})
	if reply != nil {
		t.Errorf("there is a reply beside the fault %v", err)
	}
	if n := s.Requests() - before; n != 1 {
		t.Errorf("%d requests were made, want 1: %s", n, s.Paths[before:])
	}
	return checkFault(t, err, key)
}

// checkFault checks what is true of all faults.
func checkFault(t *testing.T, err error, key string) *agent.Error {
	t.Helper()
	var fault *agent.Error
	if !errors.As(err, &fault) || fault.Provider == nil {
		t.Fatalf("got %v; want a fault", err)
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

// Golden compares what was sent with a file in testdata, or writes the file.
func Golden(t *testing.T, update bool, name string, body []byte) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, body, "", "  "); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	pretty.WriteByte('\n')
	path := filepath.Join("testdata", name)
	if update {
		if err := os.WriteFile(path, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pretty.Bytes(), want) {
		t.Errorf("sent %s\nwant %s (run with -update to keep it)", pretty.Bytes(), want)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
