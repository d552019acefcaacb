package model_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

func TestFault(t *testing.T) {
	for kind, code := range map[agent.FaultKind]agent.Code{
		agent.FaultRateLimit: agent.CodeProviderError, agent.FaultOverload: agent.CodeProviderError, agent.FaultTransient: agent.CodeProviderError,
		agent.FaultTimeout: agent.CodeProviderError, agent.FaultQuota: agent.CodeProviderError, agent.FaultBadRequest: agent.CodeProviderError,
		agent.FaultContext: agent.CodeProviderError, agent.FaultAuth: agent.CodeProviderAuth,
	} {
		got := model.Fault(kind, 418, 3*time.Second, "no")
		want := &agent.Error{
			Code: code, Message: "no", Retryable: kind.Retryable(), RetryAfter: 3 * time.Second,
			Provider: &agent.ProviderFault{Kind: kind, HTTP: 418},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", kind, got, want)
		}
	}
}

// No key is in a fault, however long its text (PA-62).
func TestFaultShowsNoSecret(t *testing.T) {
	got := model.Fault(agent.FaultAuth, 401, 0, "wrong key sk-1: sk-1 is not for pass", "sk-1", "", "pass").Message
	if want := "wrong key [secret]: [secret] is not for [secret]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// A short one, such as the key "none" of a server that needs none, is no part of a word.
	short := model.Fault(agent.FaultAuth, 401, 0, "nonexistent key none: none-such, (none)", "none").Message
	if want := "nonexistent key [secret]: none-such, ([secret])"; short != want {
		t.Errorf("got %q, want %q", short, want)
	}
	// A secret at the cut is gone before it is cut.
	long := model.Fault(agent.FaultAuth, 401, 0, strings.Repeat("x", 1997)+" sk-1", "sk-1").Message
	if strings.Contains(long, "sk") {
		t.Errorf("half a secret is in %q", long)
	}
}

func TestFaultIsBounded(t *testing.T) {
	for length, want := range map[int]string{2000: "", 2001: " … (2001 bytes)"} {
		got := model.Fault(agent.FaultTransient, 500, 0, strings.Repeat("x", length)).Message
		if got != strings.Repeat("x", 2000)+want {
			t.Errorf("%d bytes: got %d, which end in %q", length, len(got), got[1990:])
		}
	}
	got := model.Fault(agent.FaultTransient, 500, 0, "x"+strings.Repeat("é", 1500)).Message
	if !utf8.ValidString(got) || !strings.HasSuffix(got, "é … (3001 bytes)") {
		t.Errorf("a cut letter: got %q", got[1990:])
	}
}

// An answer's status tells what kind of fault it is (PA-62).
func TestKindOf(t *testing.T) {
	for kind, statuses := range map[agent.FaultKind][]int{
		agent.FaultAuth:       {401, 403},
		agent.FaultQuota:      {402},
		agent.FaultContext:    {413},
		agent.FaultRateLimit:  {429},
		agent.FaultOverload:   {503, 529},
		agent.FaultTransient:  {408, 409, 500, 502, 504, 520, 599, 0, 200, 307},
		agent.FaultBadRequest: {400, 404, 405, 418, 422, 499},
	} {
		for _, status := range statuses {
			if got := model.KindOf(status); got != kind {
				t.Errorf("%d: got %s, want %s", status, got, kind)
			}
		}
	}
}

func TestCall(t *testing.T) {
	for _, c := range []struct{ sent, arguments, malformed string }{
		{"", `{}`, ""},
		{" \n", `{}`, ""},
		{`{}`, `{}`, ""},
		{" {\"b\": 1,\"a\":\t2}\n", "{\"b\": 1,\"a\":\t2}", ""}, // as it was written
		{`{"a":`, "", `{"a":`},
		{` Rome `, "", ` Rome `},
		{`null`, "", `null`},
		{`["a"]`, "", `["a"]`},
		{`"a"`, "", `"a"`},
		{`{} {}`, "", `{} {}`},
	} {
		want := agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{ProviderID: "theirs", Tool: "weather", Malformed: c.malformed}}
		if c.arguments != "" {
			want.Call.Arguments = json.RawMessage(c.arguments)
		}
		if got := model.CallPart("theirs", "weather", c.sent); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got the arguments %q, malformed %q", c.sent, got.Call.Arguments, got.Call.Malformed)
		}
	}
}

func asking(calls ...string) agent.Message {
	m := agent.Message{Role: agent.RoleAssistant}
	for _, id := range calls {
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: id, ProviderID: "same", Tool: "f"}})
	}
	return m
}

// Two runs of a session both call their first call t1.1.
func TestCallIDs(t *testing.T) {
	tool := agent.Message{Role: agent.RoleTool}
	id := model.CallIDs([]agent.Message{
		0: agent.TextMessage(agent.RoleUser, "Go."),
		1: asking("t1.1", "t1.2"),
		2: agent.TextMessage(agent.RoleUser, "Quick."), // said while the tools run
		3: tool,
		4: tool,
		5: agent.TextMessage(agent.RoleAssistant, "Done."),
		6: asking("t1.1"),
		7: tool,
	})
	for _, c := range []struct {
		at         int
		call, want string
	}{
		{1, "t1.1", "call00001"}, {1, "t1.2", "call00002"},
		{3, "t1.1", "call00001"}, {4, "t1.2", "call00002"},
		{6, "t1.1", "call00003"}, {7, "t1.1", "call00003"},
		{0, "t1.1", ""},                  // before anything was asked
		{7, "t1.2", ""}, {7, "t9.9", ""}, // asked by an older message, and by none
	} {
		if got := id(c.at, c.call); got != c.want {
			t.Errorf("%s in message %d: got %q, want %q", c.call, c.at, got, c.want)
		}
	}
}

// spy keeps what it is asked, and knows one model.
type spy struct {
	asked model.Request
	info  model.Info
}

func (s *spy) Info(name string) model.Info {
	if name != "theirs" {
		return model.Info{}
	}
	return s.info
}

func (s *spy) Generate(_ context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	s.asked = *req
	emit(model.Delta{Text: "Hello"})
	return &model.Reply{Finish: model.FinishStop}, nil
}

func TestNamed(t *testing.T) {
	known := model.Info{Price: agent.Price{Input: 2, Output: 4}, Window: 1000, MaxOutput: 100}
	own := agent.Price{Input: 1}
	for name, c := range map[string]struct{ better, want model.Info }{
		"nothing better": {model.Info{}, known},
		"a price":        {model.Info{Price: own}, model.Info{Price: own, Window: 1000, MaxOutput: 100}},
		"sizes":          {model.Info{Window: 2000, MaxOutput: 200}, model.Info{Price: known.Price, Window: 2000, MaxOutput: 200}},
		"images":         {model.Info{MaxImageSide: 9}, model.Info{Price: known.Price, Window: 1000, MaxOutput: 100, MaxImageSide: 9}},
		"thinking":       {model.Info{Reasoning: []agent.Reasoning{agent.ReasoningLow}, Temperature: "any"}, model.Info{Price: known.Price, Window: 1000, MaxOutput: 100, Reasoning: []agent.Reasoning{agent.ReasoningLow}, Temperature: "any"}},
		"smaller sizes":  {model.Info{Window: 500, MaxOutput: 50}, model.Info{Price: known.Price, Window: 500, MaxOutput: 50}},
	} {
		require.Equal(t, c.want, model.WithInfo(&spy{info: known}, "theirs", c.better).Info("ours"), name)
	}

	s := &spy{}
	req := &model.Request{Model: "ours", Instructions: "Be brief."}
	var text string
	reply, err := model.WithInfo(s, "theirs", model.Info{}).Generate(t.Context(), req, func(d model.Delta) { text += d.Text })
	if err != nil || reply.Finish != model.FinishStop || text != "Hello" {
		t.Errorf("got %+v, %v and the text %q", reply, err, text)
	}
	if s.asked.Model != "theirs" || s.asked.Instructions != "Be brief." {
		t.Errorf("asked %+v", s.asked)
	}
	if req.Model != "ours" {
		t.Errorf("the caller's request was changed to %s", req.Model)
	}
}
