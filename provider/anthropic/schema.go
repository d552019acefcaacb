package anthropic

import (
	"encoding/json"
	"slices"

	"github.com/fermata-agents/fermata/model"
)

// What the provider's structured outputs can hold a model to (page "Structured
// outputs" of platform.claude.com/docs, as of 2026-11-21).
const (
	maxOptional = 24 // properties that are not required
	maxUnions   = 16 // alternatives: anyOf, or several types
)

var (
	schemaKeys    = []string{"type", "anyOf", "allOf", "description", "title", "enum", "const", "properties", "additionalProperties", "required", "items", "minItems", "format"}
	stringFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)

// outputSchema is a schema in the provider's form, where it is one that the
// provider can hold its models to. Other schemas would be refused: the runtime
// checks the answers, and no answer is worse for a schema that was not sent.
func outputSchema(raw json.RawMessage) (json.RawMessage, bool) {
	tree, plain, ok := model.OutputSchema(raw)
	var f fit
	if !ok || !f.holds(tree) || f.optional > maxOptional || f.unions > maxUnions {
		return nil, false
	}
	return plain, true
}

// fit counts what the provider limits over a whole schema.
type fit struct{ optional, unions int }

// holds tells whether a schema, or a part of one, is of the supported kind.
func (f *fit) holds(node any) bool {
	s, ok := node.(map[string]any)
	if !ok {
		return false
	}
	says := 0
	for key := range s {
		if !slices.Contains(schemaKeys, key) {
			return false
		}
		if slices.Contains([]string{"type", "anyOf", "allOf", "enum", "const"}, key) {
			says++
		}
	}
	if says == 0 { // anything goes: not for the provider
		return false
	}
	for _, key := range []string{"anyOf", "allOf"} {
		if alternatives, ok := s[key]; ok && !f.allHold(alternatives) {
			return false
		}
	}
	if _, ok := s["anyOf"]; ok {
		f.unions++
	}
	if types, ok := s["type"].([]any); ok && len(types) > 1 {
		f.unions++
	}
	if items, ok := s["items"]; ok && !f.holds(items) {
		return false
	}
	if n, ok := s["minItems"]; ok && n != 0.0 && n != 1.0 {
		return false
	}
	if format, ok := s["format"].(string); ok && !slices.Contains(stringFormats, format) {
		return false
	}
	return plain(s["enum"]) && f.object(s)
}

func (f *fit) allHold(list any) bool {
	nodes, ok := list.([]any)
	return ok && !slices.ContainsFunc(nodes, func(n any) bool { return !f.holds(n) })
}

// object tells whether an object's properties are listed, and no others allowed.
func (f *fit) object(s map[string]any) bool {
	isObject := s["type"] == "object" || s["properties"] != nil
	if types, ok := s["type"].([]any); ok {
		isObject = isObject || slices.Contains(types, any("object"))
	}
	if !isObject {
		return true
	}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, p := range properties {
		if !f.holds(p) {
			return false
		}
	}
	f.optional += max(0, len(properties)-len(required))
	return s["additionalProperties"] == false
}

// plain tells whether an enum's values are all simple.
func plain(enum any) bool {
	values, _ := enum.([]any)
	return !slices.ContainsFunc(values, func(v any) bool {
		switch v.(type) {
		case map[string]any, []any:
			return true
		}
		return false
	})
}
