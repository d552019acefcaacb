package model_test

import (
	"encoding/json"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

func TestInputSchema(t *testing.T) {
	demanded := map[string]string{"type": `"object"`, "properties": `{}`}
	for _, c := range []struct{ name, written, want string }{
		{"empty", ``, `{"properties":{},"type":"object"}`},
		{"of anything", `{}`, `{"properties":{},"type":"object"}`},
		{"no type", `{"properties":{"z":{},"a":{}}}`, `{"properties":{"z":{},"a":{}},"type":"object"}`}, // which keeps its order
		{"no properties", `{"type":"object"}`, `{"properties":{},"type":"object"}`},
		{"another type", `{"type":["object","null"],"properties":{}}`, `{"type":["object","null"],"properties":{}}`},
		{"whole", "{\"type\": \"object\",\n\"properties\":{\"a\":{\"description\":\"<b>\"}}}", "{\"type\": \"object\",\n\"properties\":{\"a\":{\"description\":\"<b>\"}}}"},
	} {
		got, err := model.InputSchema(agent.ToolSpec{Name: "f", Input: json.RawMessage(c.written)}, demanded)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v; want %s", c.name, got, err, c.want)
		}
	}
	got, err := model.InputSchema(agent.ToolSpec{Name: "f"}, nil)
	if err != nil || string(got) != `{}` {
		t.Errorf("nothing demanded: got %s, %v", got, err)
	}
	for _, written := range []string{`{`, `null`, `true`, `[]`, `"object"`, ` `} {
		got, err := model.InputSchema(agent.ToolSpec{Name: "f", Input: json.RawMessage(written)}, demanded)
		if err == nil || err.Error() != "the input of the tool f is not a JSON Schema of an object" {
			t.Errorf("%s: got %s, %v", written, got, err)
		}
	}
}

func TestOutputSchema(t *testing.T) {
	tree, plain, ok := model.OutputSchema(json.RawMessage(
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"city","type":"object","properties":{"z":{"$id":"kept"},"a":{}}}`))
	if want := `{"properties":{"z":{"$id":"kept"},"a":{}},"type":"object"}`; !ok || string(plain) != want {
		t.Errorf("got %s, %v; want %s", plain, ok, want)
	}
	again, err := json.Marshal(tree)
	if want := `{"properties":{"a":{},"z":{"$id":"kept"}},"type":"object"}`; err != nil || string(again) != want {
		t.Errorf("got the tree %s, %v; want %s", again, err, want)
	}
	for _, raw := range []string{``, `{`, `null`, `true`, `{}`, `{"type":"array"}`, `{"type":["object","null"]}`, `{"anyOf":[{"type":"object"}]}`} {
		if tree, plain, ok := model.OutputSchema(json.RawMessage(raw)); ok || tree != nil || plain != nil {
			t.Errorf("%s: got %v, %s", raw, tree, plain)
		}
	}
}
