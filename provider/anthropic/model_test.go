package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
)

func TestNoKey(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("ANTHROPIC_BASE_URL", "")
	for name, o := range map[string]*anthropic.Options{"nil": nil, "none": {Name: "claude"}} {
		_, err := anthropic.New(o).Generate(t.Context(), ask("Hello"), silent)
		var fault *agent.Error
		if !errors.As(err, &fault) || fault.Provider.Kind != agent.FaultAuth || !strings.Contains(fault.Message, "set ANTHROPIC_API_KEY") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	_, s := serve(t, standin.Answer(200, "text/event-stream", whole))
	t.Setenv("ANTHROPIC_API_KEY", " "+key+"\n")
	t.Setenv("ANTHROPIC_BASE_URL", s.URL+"/")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "another") // only what the options name is read
	m := anthropic.New(nil)
	t.Setenv("ANTHROPIC_API_KEY", "later")
	standin.Reply(t, m, ask("Hello"))
	if h := s.Heads[0]; h.Get("x-api-key") != key || h.Get("authorization") != "" {
		t.Errorf("sent the headers %v", h)
	}
}

func TestBaseURL(t *testing.T) {
	for _, base := range []string{"api.anthropic.com", "ftp://host", "http://", "http://[::1", "://"} {
		_, err := anthropic.New(&anthropic.Options{APIKey: key, BaseURL: base}).Generate(t.Context(), ask("Hello"), silent)
		var fault *agent.Error
		if !errors.As(err, &fault) || fault.Retryable || !strings.Contains(fault.Message, "base URL") {
			t.Errorf("%s: got %v", base, err)
		}
	}
}

// Nothing that is printed by accident has the key.
func TestKeyIsNotShown(t *testing.T) {
	o := anthropic.Options{APIKey: key, BaseURL: "https://me:pass-word@gateway.example"}
	m := anthropic.New(&o)
	asJSON, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{o, &o, m, *m} {
		for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
			if s := fmt.Sprintf(form, v); strings.Contains(s, key) || strings.Contains(s, "pass-word") {
				t.Errorf("%s of %T shows a secret: %s", form, v, s)
			}
		}
	}
	if strings.Contains(string(asJSON), key) {
		t.Errorf("JSON shows the key: %s", asJSON)
	}
}

func TestName(t *testing.T) {
	_, s := serve(t, standin.Answer(401, "application/json", problem("authentication_error", "no")))
	m := anthropic.New(&anthropic.Options{APIKey: key, BaseURL: s.URL, Name: "claude"})
	if fault := mustFail(t, m, s); !strings.HasPrefix(fault.Message, "claude answered 401") {
		t.Errorf("got %q", fault.Message)
	}
}

func TestInfo(t *testing.T) {
	m := anthropic.New(nil)
	want := model.Info{
		Price:  agent.Price{Input: 4 * agent.Dollar, Output: 20 * agent.Dollar, CacheRead: agent.Dollar / 5, CacheWrite: 5 * agent.Dollar},
		Window: 1_000_000, MaxOutput: 128_000,
	}
	if got := m.Info("claude-opus-5-5"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := m.Info("claude-haiku-4-5-20251001"); got != m.Info("claude-haiku-4-5") || got.Window == 0 {
		t.Errorf("a fixed version: got %+v", got)
	}
	if got := m.Info("claude-of-tomorrow"); got != (model.Info{}) {
		t.Errorf("an unknown model: got %+v", got)
	}
}
