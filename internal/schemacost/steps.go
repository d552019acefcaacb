package schemacost

import (
	"encoding/json"
	"reflect"
	"slices"
)

// Steps returns how many steps it takes at most to check one part of a value against a
// schema, if the value is nested so deep. Multiplied by the parts of the value, it bounds
// the cost of a check. It is at most [Unbounded]: if each reference leads to two others,
// the steps grow without bound. [Cycle] and [HeavyPatterns] must have accepted the
// schema. Workflows must not call it.
func Steps(schema []byte, depth int) int {
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return 0
	}
	c := counter{wanderer{root}, map[place]int{}}
	return c.steps(root, depth)
}

// Unbounded stands for more steps than any check may take.
const Unbounded = 1 << 40

// place is a schema and how deeply the value under it is nested.
type place struct {
	schema uintptr
	depth  int
}

// counter counts the steps of each schema once.
type counter struct {
	wanderer
	known map[place]int
}

// Keywords that check the same value, and keywords that check what is in it.
var (
	sameKeys  = []string{"not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"}
	belowKeys = []string{
		"properties", "patternProperties", "additionalProperties", "propertyNames", "unevaluatedProperties",
		"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains",
	}
	namedKeys = []string{"properties", "patternProperties", "dependentSchemas", "dependencies"} // these have a schema for each name
)

func (c counter) steps(v any, depth int) int {
	schema, ok := v.(map[string]any)
	if !ok {
		return 1
	}
	// By identity: references share schemas, and counting each use again could take
	// forever.
	key := place{reflect.ValueOf(schema).Pointer(), depth}
	if n, ok := c.known[key]; ok {
		return n
	}
	pattern, _ := schema["pattern"].(string)
	n := 1 + PatternWeight(pattern)
	for _, key := range []string{"enum", "required", "type"} {
		list, _ := schema[key].([]any)
		n += len(list)
	}
	for _, key := range sameKeys {
		n = c.add(n, key, schema[key], depth)
	}
	if ref, ok := schema["$ref"].(string); ok {
		n = min(Unbounded, n+c.steps(c.wanderer.at(ref), depth))
	}
	if depth > 0 {
		for _, key := range belowKeys {
			n = c.add(n, key, schema[key], depth-1)
		}
	}
	if patterns, ok := schema["patternProperties"].(map[string]any); ok {
		for name := range patterns { //workflowcheck:ignore a sum has no order
			n += PatternWeight(name)
		}
	}
	c.known[key] = n
	return n
}

// add adds the steps of a keyword's schema or schemas.
func (c counter) add(n int, key string, v any, depth int) int {
	var list []any
	switch v := v.(type) {
	case []any:
		list = v
	case map[string]any:
		if list = []any{v}; slices.Contains(namedKeys, key) {
			list = values(v)
		}
	}
	for _, one := range list {
		n = min(Unbounded, n+c.steps(one, depth))
	}
	return n
}
