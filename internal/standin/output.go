package standin

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Outputs are schemas of answers of every kind: some that every provider's own format
// supports, and some that none does.
var Outputs = map[string]string{
	"object":         `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`,
	"open object":    `{"type":"object","properties":{"city":{"type":"string"}}}`,
	"any object":     `{"type":"object"}`,
	"map":            `{"type":"object","additionalProperties":{"type":"integer"}}`,
	"bounds":         `{"type":"object","properties":{"zip":{"type":"string","minLength":5,"pattern":"^[0-9]+$"},"at":{"const":"noon"}},"required":["zip","at"],"additionalProperties":false}`,
	"reference":      `{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"required":["a"],"additionalProperties":false,"$defs":{"n":{"type":"integer"}}}`,
	"recursion":      `{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}`,
	"alternatives":   `{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"null"}]}`,
	"array":          `{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"],"additionalProperties":false},"minItems":2}`,
	"string":         `{"type":"string","minLength":3}`,
	"number":         `{"type":"number","maximum":7}`,
	"enumeration":    `{"enum":["yes","no",null]}`,
	"without a type": `{"properties":{"a":{"type":"string"}}}`,
}

// OutputReaches checks that the schema of an answer is in the first request, with tools
// and without: as JSON or in words.
func OutputReaches(t *testing.T, make Making, answer http.HandlerFunc, req model.Request, tools []agent.ToolSpec) {
	t.Helper()
	for name, schema := range Outputs {
		for _, given := range [][]agent.ToolSpec{nil, tools} {
			s := Listen(t, answer)
			asked := req
			asked.Output, asked.Tools = json.RawMessage(schema), given
			Reply(t, make(s.URL, nil), &asked)
			if !says(t, s.Bodies[0], schema) {
				t.Errorf("%s, with %d tools: the schema is not in the request: %s", name, len(given), s.Bodies[0])
			}
		}
	}
}

// says reports whether a body contains a schema.
func says(t *testing.T, body []byte, schema string) bool {
	t.Helper()
	var tree, want any
	if err := json.Unmarshal(body, &tree); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if err := json.Unmarshal([]byte(schema), &want); err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	var in func(node any) bool
	in = func(node any) bool {
		if reflect.DeepEqual(node, want) {
			return true
		}
		switch node := node.(type) {
		case string:
			return strings.Contains(node, schema)
		case []any:
			for _, v := range node {
				if in(v) {
					return true
				}
			}
		case map[string]any:
			for _, v := range node {
				if in(v) {
					return true
				}
			}
		}
		return false
	}
	return in(tree)
}
