package standin

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Types are the content types that [Canned] may answer with.
var Types = []string{"text/event-stream", "application/json", "text/html", ""}

// Canned returns a client that gives every request one answer, without a server, for fuzz
// tests. kind is an index into [Types]. A status that no client passes on becomes 200.
func Canned(status int, kind uint8, body []byte) *http.Client {
	if status < 200 || status > 599 {
		status = http.StatusOK
	}
	return &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {Types[int(kind)%len(Types)]}}, Body: io.NopCloser(bytes.NewReader(body)),
		}, nil
	})}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// Sound asks once and checks what must be true of every adapter, whatever a server
// answers. There is either a reply or an error; calls have arguments or are malformed;
// counts are not negative.
func Sound(t *testing.T, m model.Model, req *model.Request, key string) {
	t.Helper()
	e := &Ear{}
	reply, err := m.Generate(t.Context(), req, e.Emit)
	if err != nil {
		if reply != nil {
			t.Errorf("there is a reply beside the fault %v", err)
		}
		checkFault(t, err, key)
		return
	}
	finishes := []model.Finish{model.FinishStop, model.FinishToolCalls, model.FinishLength, model.FinishContentFilter, model.FinishPauseTurn}
	if !slices.Contains(finishes, reply.Finish) {
		t.Errorf("the reply finishes with %q", reply.Finish)
	}
	u := reply.Usage
	if min(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning, u.Searches) < 0 || u.Total() < 0 {
		t.Errorf("the usage is %+v", u)
	}
	var text, thinking strings.Builder
	calls := 0
	for _, p := range reply.Parts {
		for _, c := range p.Citations {
			if err := c.Check(p.Text); err != nil {
				t.Errorf("the citation %+v is not valid: %v", c, err)
			}
		}
		switch p.Type {
		case agent.PartText:
			text.WriteString(p.Text)
		case agent.PartThinking:
			thinking.WriteString(p.Text)
		case agent.PartToolCall:
			calls++
			checkCall(t, p.Call)
		case agent.PartServerTool:
			if !json.Valid(p.Raw) {
				t.Errorf("a step of a provider's tool is %q", p.Raw)
			}
		default:
			t.Errorf("a part is of type %q", p.Type)
		}
	}
	if (reply.Finish == model.FinishToolCalls) != (calls > 0) && reply.Finish != model.FinishLength && reply.Finish != model.FinishContentFilter {
		t.Errorf("the reply finishes with %s and has %d calls", reply.Finish, calls)
	}
	// The text of a reply that was filtered may be the provider's explanation, which was
	// never emitted.
	if heard := e.Text.String(); heard != text.String() && reply.Finish != model.FinishContentFilter {
		t.Errorf("emitted %q, and replied %q", heard, text.String())
	}
	if heard := e.Thinking.String(); heard != thinking.String() {
		t.Errorf("emitted the thinking %q, and replied %q", heard, thinking.String())
	}
	asJSON(t, reply)
}

func checkCall(t *testing.T, c *agent.ToolCall) {
	t.Helper()
	var object map[string]json.RawMessage
	sound := c.Malformed == "" && json.Unmarshal(c.Arguments, &object) == nil && object != nil
	if broken := c.Malformed != "" && c.Arguments == nil; !sound && !broken {
		t.Errorf("the call %+v has neither arguments nor malformed ones", c)
	}
}
