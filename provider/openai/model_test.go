package openai_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
)

func TestNoKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	for name, o := range map[string]*openai.Options{"nil": nil, "none": {Name: "gpt"}, "a region": {BaseURL: "https://eu.api.openai.com/v1"}, "Azure": {BaseURL: "https://me.openai.azure.com/openai/v1"}} {
		_, err := openai.New(o).Generate(t.Context(), ask("Hello"), silent)
		var fault *agent.Error
		if !errors.As(err, &fault) || fault.Provider.Kind != agent.FaultAuth || !strings.Contains(fault.Message, "set OPENAI_API_KEY") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A server that needs no key is sent none, and above all not OpenAI's.
func TestKeyOfAnother(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", key)
	s := standin.Listen(t, standin.Drip(wholeChat, 0))
	standin.Reply(t, openai.New(&openai.Options{Name: "ollama", BaseURL: s.URL + "/v1"}), ask("Hello"))
	if got := s.Heads[0].Get("authorization"); got != "" {
		t.Errorf("sent the authorization %q", got)
	}
	s = standin.Listen(t, standin.Answer(401, "application/json", `{"error":"Unauthorized"}`))
	m := openai.New(&openai.Options{Name: "vllm", BaseURL: s.URL + "/v1"})
	if fault := mustFail(t, m, s); fault.Message != "vllm answered 401: Unauthorized; no key was sent, set one in the options of vllm" {
		t.Errorf("got %q", fault.Message)
	}
}

func TestEnvironment(t *testing.T) {
	s := standin.Listen(t, standin.Drip(wholeChat, 0))
	t.Setenv("OPENAI_API_KEY", " "+key+"\n")
	t.Setenv("OPENAI_BASE_URL", s.URL+"/v1/")
	t.Setenv("OPENAI_ORG_ID", "another") // only what the options name is read
	t.Setenv("OPENAI_CUSTOM_HEADERS", "x-more: yes")
	m := openai.New(nil)
	t.Setenv("OPENAI_API_KEY", "later")
	standin.Reply(t, m, ask("Hello"))
	if h := s.Heads[0]; h.Get("authorization") != "Bearer "+key || h.Get("openai-organization") != "" || h.Get("x-more") != "" {
		t.Errorf("sent the headers %v", h)
	}
	if s.Paths[0] != "/v1/chat/completions" {
		t.Errorf("asked at %s", s.Paths[0])
	}
}

// OpenAI's own servers are spoken to in the form that all its models know, and
// its key is theirs.
func TestOpenAI(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", key)
	t.Setenv("OPENAI_BASE_URL", "")
	for base, path := range map[string]string{
		"":                                      "/v1/responses",
		"https://us.api.openai.com/v1":          "/v1/responses",
		"https://me.openai.azure.com/openai/v1": "/openai/v1/responses",
	} {
		s := standin.Listen(t, standin.Drip(wholeResponse, 0))
		standin.Reply(t, openai.New(&openai.Options{BaseURL: base, HTTPClient: detour(s.URL)}), ask("Hello"))
		if s.Paths[0] != path || s.Heads[0].Get("authorization") != "Bearer "+key {
			t.Errorf("%s: asked at %s with %v", base, s.Paths[0], s.Heads[0])
		}
	}
	s := standin.Listen(t, standin.Answer(401, "application/json", `{"error":{"message":"Incorrect API key"}}`))
	if fault := mustFail(t, openai.New(&openai.Options{HTTPClient: detour(s.URL)}), s); fault.Message != "openai answered 401: Incorrect API key; check OPENAI_API_KEY on the worker" {
		t.Errorf("got %q", fault.Message)
	}
}

func TestWrongAPI(t *testing.T) {
	_, err := openai.New(&openai.Options{BaseURL: "http://host/v1", API: "soap"}).Generate(t.Context(), ask("Hello"), silent)
	var fault *agent.Error
	if !errors.As(err, &fault) || fault.Retryable || !strings.Contains(fault.Message, "api must be") {
		t.Errorf("got %v", err)
	}
}

// Nothing that is printed by accident has the key.
func TestKeyIsNotShown(t *testing.T) {
	o := openai.Options{APIKey: key, BaseURL: "https://me:pass-word@gateway.example/v1"}
	m := openai.New(&o)
	standin.Hides(t, key, "pass-word", o, &o, m, *m)
}

func TestInfo(t *testing.T) {
	standin.SaneTable(t, openai.Table())
	own := model.Info{Window: 8192}
	m := openai.New(&openai.Options{Infos: map[string]model.Info{"llama": own, "gpt-4o": own}})
	if !reflect.DeepEqual(m.Info("llama"), own) || !reflect.DeepEqual(m.Info("gpt-4o"), own) {
		t.Errorf("got %+v and %+v, want what the options say", m.Info("llama"), m.Info("gpt-4o"))
	}
	want := model.Info{
		Price:  agent.Price{Input: 2 * agent.Dollar, Output: 10 * agent.Dollar, CacheRead: agent.Dollar / 10, CacheWrite: 5 * agent.Dollar / 2},
		Window: 1_050_000, MaxOutput: 128_000, Temperature: model.TemperatureNever, Reasoning: []agent.Reasoning{agent.ReasoningLow, agent.ReasoningMedium, agent.ReasoningHigh, agent.ReasoningXHigh, agent.ReasoningMax}, Files: openai.Table().Files, ResultFiles: openai.Table().ResultFiles,
	}
	if got := m.Info("gpt-6.1-sol"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := m.Info("gpt-5-2025-08-07"); !reflect.DeepEqual(got, m.Info("gpt-5")) || got.Price.CacheWrite != got.Price.Input {
		t.Errorf("a fixed version: got %+v", got)
	}
	if got := m.Info("o3-2025-04-16"); got.Window != 200_000 || got.Price != (agent.Price{}) {
		t.Errorf("an older model: got %+v, want its window and no price", got)
	}
	if got := openai.New(nil).Info("llama"); !got.IsZero() {
		t.Errorf("an unknown model: got %+v", got)
	}
}
