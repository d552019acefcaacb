package anthropic

import (
	"encoding/json"
	"slices"

	"github.com/fermata-agents/fermata/model"
)

// Limits of the provider's structured outputs (page "Structured outputs" of
// platform.claude.com/docs, as of 2026-11-21).
const (
	maxOptional = 24 // properties that are not required
	maxUnions   = 16 // alternatives: anyOf, or several types
)

// subset is the part of a schema that the provider accepts.
var subset = model.Subset{Closed: true, Takes: map[string]func(any) bool{
	"type": nil, "anyOf": nil, "allOf": nil, "description": nil, "title": nil, "enum": plain, "const": nil, "properties": nil,
	"additionalProperties": nil, "required": nil, "items": nil,
	"minItems": func(n any) bool { return n == 0.0 || n == 1.0 },
	"format": func(name any) bool {
		return slices.Contains([]any{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}, name)
	},
}}

// outputSchema returns a schema as far as the provider can enforce it, and whether that
// is the whole schema; nil if the provider would refuse it.
func outputSchema(raw json.RawMessage) (schema json.RawMessage, whole bool) {
	schema, whole = subset.Convert(raw)
	var tree map[string]any
	var f fit
	// The provider refuses more, and then the whole request fails.
	if json.Unmarshal(schema, &tree) != nil || tree["type"] != "object" || !f.holds(tree) || f.optional > maxOptional || f.unions > maxUnions {
		return nil, false
	}
	return schema, whole
}

// fit counts what the provider limits for a whole schema.
type fit struct{ optional, unions int }

// holds reports whether the provider accepts a schema of its subset, or a part of one.
func (f *fit) holds(node any) bool {
	s, ok := node.(map[string]any)
	if !ok {
		return false
	}
	says := 0
	for key := range s {
		if slices.Contains([]string{"type", "anyOf", "allOf", "enum", "const"}, key) {
			says++
		}
	}
	if says == 0 { // it accepts everything, which the provider refuses
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
	return f.object(s)
}

func (f *fit) allHold(list any) bool {
	nodes, ok := list.([]any)
	return ok && !slices.ContainsFunc(nodes, func(n any) bool { return !f.holds(n) })
}

// object reports whether an object lists its properties and allows no others.
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
	// The provider counts them over the whole schema.
	f.optional += max(0, len(properties)-len(required))
	return s["additionalProperties"] == false
}

// plain reports whether all values of an enum are simple.
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
