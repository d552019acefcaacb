package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// gatewayKey is the secret in a header and in a body.
const gatewayKey = "a-key-of-a-gateway-0123"

// Adds checks that an adapter sends what a model.Extra adds, and shows no secret of it.
// It also checks that the adapter refuses extra fields that it writes itself, at the top
// and in objects. body is what is added; open returns a Model with that name that sends
// requests to base.
func Adds(t *testing.T, name string, body map[string]any, open func(base string, x model.Extra) model.Model) {
	t.Helper()
	s := Listen(t, Answer(http.StatusBadRequest, "application/json", `{"error":{"message":"no `+gatewayKey+` is known"},"message":"no `+gatewayKey+` is known"}`))
	x := model.Extra{Headers: map[string]string{"X-Team": "research", "x-gateway-key": gatewayKey}, Body: body, Secrets: []string{gatewayKey}}
	req := everything(name)
	m := open(s.URL, x)
	fault := s.Fails(t, m, req, gatewayKey)
	if !strings.Contains(fault.Message, "[secret] is known") {
		t.Errorf("the fault is %q", fault.Message)
	}
	Hides(t, gatewayKey, gatewayKey, m, x, &x)
	if h := s.Heads[0]; h.Get("X-Team") != "research" || h.Get("X-Gateway-Key") != gatewayKey {
		t.Errorf("the headers are %v", h)
	}
	var sent, plain map[string]any
	s.Fails(t, open(s.URL, model.Extra{}), req, "no such key")
	if err := errors.Join(json.Unmarshal(s.Bodies[0], &sent), json.Unmarshal(s.Bodies[1], &plain)); err != nil {
		t.Fatal(err)
	}
	if want := joined(t, plain, body); !reflect.DeepEqual(sent, want) {
		t.Errorf("sent %v\nwant %v", sent, want)
	}
	before := s.Requests()
	for field, value := range plain {
		refuses(t, open, s.URL, req, field, map[string]any{field: "mine"})
		inner, _ := value.(map[string]any)
		for name := range inner {
			refuses(t, open, s.URL, req, field+"."+name, map[string]any{field: map[string]any{name: "mine"}})
		}
	}
	if s.Requests() != before {
		t.Error("a request was made with a field that is taken")
	}
}

func refuses(t *testing.T, open func(base string, x model.Extra) model.Model, base string, req *model.Request, field string, body map[string]any) {
	t.Helper()
	_, err := open(base, model.Extra{Body: body}).Generate(t.Context(), req, Silent)
	var fault *agent.Error
	if !errors.As(err, &fault) || fault.Provider == nil || fault.Provider.Kind != agent.FaultBadRequest || !strings.Contains(fault.Message, "body.") {
		t.Errorf("%s: %v", field, err)
	}
}

// everything returns a request with all fields set.
func everything(name string) *model.Request {
	half := 0.5
	return &model.Request{
		Call: model.CallInfo{Session: "s", Run: "r", Turn: 1}, Model: name, Instructions: "Be brief.", MaxOutputTokens: 9000, Temperature: &half,
		Messages:  []agent.Message{agent.TextMessage(agent.RoleUser, "What is two and two?")},
		Tools:     []agent.ToolSpec{{Name: "add", Description: "Adds.", Input: json.RawMessage(`{"type":"object","properties":{}}`)}},
		Output:    json.RawMessage(`{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false}`),
		Reasoning: agent.ReasoningHigh, NoCalls: true,
	}
}

// joined returns an object with the fields of another added, as JSON decodes it.
func joined(t *testing.T, object, more map[string]any) map[string]any {
	t.Helper()
	out := maps.Clone(object)
	for _, name := range slices.Sorted(maps.Keys(more)) {
		inner, isObject := more[name].(map[string]any)
		was, there := out[name].(map[string]any)
		if isObject && there {
			out[name] = joined(t, was, inner)
			continue
		}
		var plain any
		data, err := json.Marshal(more[name])
		if err = errors.Join(err, json.Unmarshal(data, &plain)); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", name, err))
		}
		out[name] = plain
	}
	return out
}
