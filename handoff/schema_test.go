package handoff

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A handoff fits its schema (PA-71).
func TestHandoffsFitTheSchema(t *testing.T) {
	schema := resolved(t, Schema())
	all := goldens()
	all["huge"] = Truncate(deepTree(364, 10_000))
	for name, h := range all {
		var v any
		require.NoError(t, json.Unmarshal(jsonOf(t, h), &v))
		require.NoError(t, schema.Validate(v), name)
	}
}

// The schema is looked at all the way down.
func TestTheSchemaRefuses(t *testing.T) {
	schema := resolved(t, Schema())
	for name, change := range map[string]func(h *agent.Handoff){
		"version":          func(h *agent.Handoff) { h.V = 2 },
		"status":           func(h *agent.Handoff) { h.Status = "gone" },
		"writer":           func(h *agent.Handoff) { h.SummarizedBy = "" },
		"confidence":       func(h *agent.Handoff) { h.Confidence = 2 },
		"whose confidence": func(h *agent.Handoff) { h.ConfidenceBy = "gone" },
		"evidence":         func(h *agent.Handoff) { h.Evidence = []agent.Evidence{{Kind: "book"}} },
		"request":          func(h *agent.Handoff) { h.Requests[0].Type = "wish" },
		"child":            func(h *agent.Handoff) { h.Children[0].V = 2 },
		"child of a child": func(h *agent.Handoff) { h.Children[3].Children[0].V = 2 },
	} {
		h := goldens()["tree"]
		change(&h)
		var v any
		require.NoError(t, json.Unmarshal(jsonOf(t, h), &v))
		require.Error(t, schema.Validate(v), name)
	}
}

// The schema's properties are the fields of the Go types, so neither can drift
// (HL-55).
func TestTheSchemaHasTheFieldsOfTheType(t *testing.T) {
	require.NotContains(t, string(Schema()), "$id")
	root := resolved(t, Schema()).Schema()
	require.Equal(t, "https://json-schema.org/draft/2020-12/schema", root.Schema)
	checked := map[reflect.Type]bool{}
	var check func(at string, s *jsonschema.Schema, typ reflect.Type)
	check = func(at string, s *jsonschema.Schema, typ reflect.Type) {
		if s.Ref == "#" {
			s = root
		} else if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
			s = root.Defs[name]
		}
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		require.Equal(t, typeOf(typ), s.Type, at)
		switch {
		case typ.Kind() == reflect.Slice && typ != reflect.TypeFor[json.RawMessage]():
			check(at+"[]", s.Items, typ.Elem())
		case typ == reflect.TypeFor[time.Time]():
			require.Equal(t, "date-time", s.Format, at)
		case typ.Kind() == reflect.Struct && !checked[typ]:
			checked[typ] = true
			var names, required []string
			for _, f := range reflect.VisibleFields(typ) {
				if f.Anonymous { // its fields are those of the object
					continue
				}
				name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
				names = append(names, name)
				if options == "" {
					required = append(required, name)
				}
				require.Contains(t, s.Properties, name, at)
				check(at+"."+name, s.Properties[name], f.Type)
			}
			require.Len(t, s.Properties, len(names), at)
			require.ElementsMatch(t, required, s.Required, at)
		}
	}
	check("handoff", root, reflect.TypeFor[agent.Handoff]())
	require.Len(t, checked, 11, "of the $defs all but none are used: %v", checked)
	require.Len(t, root.Defs, 10)
}

// typeOf is the type in JSON Schema; empty for any.
func typeOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return ""
	case t == reflect.TypeFor[agent.USD]() || t.Kind() == reflect.Float64:
		return "number"
	case t == reflect.TypeFor[time.Time]() || t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Slice:
		return "array"
	case t.Kind() == reflect.Struct:
		return "object"
	}
	return "integer"
}

func TestSchemasAreNotShared(t *testing.T) {
	Schema()[0], SummarySchema()[0] = 'x', 'x'
	require.Equal(t, byte('{'), Schema()[0])
	require.Equal(t, byte('{'), SummarySchema()[0])
}
