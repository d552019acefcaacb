package anthropic_test

import (
	"errors"
	"reflect"
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

// Nothing that is printed by accident has the key.
func TestKeyIsNotShown(t *testing.T) {
	o := anthropic.Options{APIKey: key, BaseURL: "https://me:pass-word@gateway.example"}
	m := anthropic.New(&o)
	standin.Hides(t, key, "pass-word", o, &o, m, *m)
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
	standin.SaneTable(t, anthropic.Table())
	want := model.Info{
		Price:  agent.Price{Input: 4 * agent.Dollar, Output: 20 * agent.Dollar, CacheRead: agent.Dollar / 5, CacheWrite: 5 * agent.Dollar},
		Window: 1_000_000, MaxOutput: 128_000, Temperature: model.TemperatureNever, Reasoning: []agent.Reasoning{agent.ReasoningLow, agent.ReasoningMedium, agent.ReasoningHigh, agent.ReasoningXHigh, agent.ReasoningMax}, Files: anthropic.Table().Files, ResultFiles: anthropic.Table().ResultFiles, MaxImageSide: 8000,
	}
	if got := m.Info("claude-opus-5-5"); !reflect.DeepEqual(got, want) || got.Files["image/png"] != 3932160 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := m.Info("claude-haiku-4-5-20251001"); !reflect.DeepEqual(got, m.Info("claude-haiku-4-5")) || got.Window == 0 {
		t.Errorf("a fixed version: got %+v", got)
	}
	if got := m.Info("claude-of-tomorrow"); !got.IsZero() {
		t.Errorf("an unknown model: got %+v", got)
	}
}
