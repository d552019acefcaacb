package gemini

import (
	"encoding/json"
	"slices"

	"github.com/fermata-agents/fermata/model"
)

// subset is the part of JSON Schema that the provider enforces (page "Structured outputs"
// of ai.google.dev/gemini-api/docs, and the SDK's GenerateContentConfig). It knows
// references too, but not beside other keywords, and recursion only in part.
var subset = model.Subset{Takes: map[string]func(any) bool{
	"type": nil, "format": nil, "title": nil, "description": nil, "enum": wordsOrNumbers, "items": nil, "prefixItems": nil, "minItems": nil, "maxItems": nil,
	"minimum": nil, "maximum": nil, "anyOf": nil, "oneOf": nil, "properties": nil, "additionalProperties": nil, "required": nil,
}}

func wordsOrNumbers(enum any) bool {
	values, ok := enum.([]any)
	return ok && !slices.ContainsFunc(values, func(v any) bool {
		switch v.(type) {
		case string, float64:
			return false
		}
		return true
	})
}

// outputSchema returns a schema as far as the provider can enforce it, and whether that
// is the whole schema. It returns nil if the schema is of neither an object nor a list.
func outputSchema(raw json.RawMessage) (schema json.RawMessage, whole bool) {
	var root struct{ Type any }
	schema, whole = subset.Convert(raw)
	if json.Unmarshal(schema, &root) != nil || root.Type != "object" && root.Type != "array" {
		return nil, false
	}
	return schema, whole
}
