package agentsfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// schemaTypes are the types of JSON Schema.
var schemaTypes = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// The common keywords of JSON Schema by their kind of value. The schema compiler checks
// the others.
var (
	schemaKeys  = []string{"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}
	schemaMaps  = []string{"properties", "patternProperties", "$defs", "definitions"}
	schemaLists = []string{"anyOf", "allOf", "oneOf", "prefixItems"}
)

// checkSchema returns what no JSON Schema may have, in words of the file; nil for a
// schema that is valid as far as this checks.
func checkSchema(raw json.RawMessage, path string) error {
	if len(raw) == 0 {
		return nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "%s is not JSON", path).WithPath(path)
	}
	return schemaAt(v, path)
}

func schemaAt(v any, path string) error {
	fault := func(at, format string, args ...any) error {
		return agent.Errorf(agent.CodeInvalidInput, "%s %s", at, fmt.Sprintf(format, args...)).WithPath(at)
	}
	if _, ok := v.(bool); ok {
		return nil
	}
	schema, ok := v.(map[string]any)
	if !ok {
		return fault(path, "must be a JSON Schema, such as {type: object, properties: {…}}")
	}
	// Sorted, so the first error is the same each time.
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		value, at := schema[key], path+"."+key
		switch {
		case key == "type":
			for _, name := range listOf(value) {
				text, ok := name.(string)
				if !ok || !slices.Contains(schemaTypes, text) {
					return fault(at, "has %s; the types are %s%s", quote(fmt.Sprint(name)), strings.Join(schemaTypes, ", "), meant(fmt.Sprint(name), schemaTypes))
				}
			}
		case key == "required" || key == "enum" || slices.Contains(schemaLists, key):
			list, ok := value.([]any)
			if !ok {
				return fault(at, "must be a list")
			}
			for i, one := range list {
				if slices.Contains(schemaLists, key) {
					if err := schemaAt(one, fmt.Sprintf("%s[%d]", at, i)); err != nil {
						return err
					}
				}
			}
		case slices.Contains(schemaMaps, key):
			parts, ok := value.(map[string]any)
			if !ok {
				return fault(at, "needs names, each with a JSON Schema below")
			}
			for _, name := range slices.Sorted(maps.Keys(parts)) {
				if err := schemaAt(parts[name], at+"."+name); err != nil {
					return err
				}
			}
		case slices.Contains(schemaKeys, key):
			if err := schemaAt(value, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// listOf returns a list, or one value as a list.
func listOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}
