package gemini

import (
	"encoding/json"
	"slices"

	"github.com/fermata-agents/fermata/model"
)

// schemaKeys are the keywords of JSON Schema that the provider holds a model to
// (page "Structured outputs" of ai.google.dev/gemini-api/docs, and the SDK's
// GenerateContentConfig). It knows references, too, but only some of them.
var schemaKeys = []string{"type", "format", "title", "description", "enum", "items", "prefixItems", "minItems", "maxItems", "minimum", "maximum",
	"anyOf", "oneOf", "properties", "additionalProperties", "required"}

// outputSchema is a schema in the provider's form, where it is one that the
// provider can hold its models to. Other schemas are left to the runtime, which
// checks the answers.
func outputSchema(raw json.RawMessage) (json.RawMessage, bool) {
	tree, plain, ok := model.OutputSchema(raw)
	return plain, ok && holds(tree)
}

// holds tells whether a schema, or a part of one, is of the supported kind.
func holds(node any) bool {
	s, ok := node.(map[string]any)
	if !ok {
		return false
	}
	for key, value := range s {
		good := slices.Contains(schemaKeys, key)
		switch key {
		case "items":
			good = holds(value)
		case "anyOf", "oneOf", "prefixItems":
			list, ok := value.([]any)
			good = ok && !slices.ContainsFunc(list, func(n any) bool { return !holds(n) })
		case "properties":
			parts, ok := value.(map[string]any)
			good = ok
			for _, part := range parts {
				good = good && holds(part)
			}
		case "additionalProperties":
			_, plain := value.(bool)
			good = plain || holds(value)
		}
		if !good {
			return false
		}
	}
	return true
}
