package partial

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is the JSON Schema of an answer. It checks what can be said of a value that is not
// complete: the types, the names of properties, and whether a scalar that is complete fits.
// What needs the whole value, such as "required" or "minItems", is left for the end. One
// goroutine uses it.
type Schema struct {
	doc  any
	root *node
}

// NewSchema reads a schema. If it can't be read, any JSON fits.
func NewSchema(raw json.RawMessage) *Schema {
	s := &Schema{}
	if json.Unmarshal(raw, &s.doc) == nil {
		s.root = s.node([]conditions{s.expand(s.doc)})
	}
	return s
}

// Limits of what is made of a schema. A value is checked against fewer conditions, if
// there would be more.
const (
	maxAlternatives = 64
	maxSteps        = 1000
)

// node has the alternatives of a value's place; nil takes any value.
type node struct {
	schema       *Schema
	alternatives []*alternative
	known        map[string]*node // made before, by kind, name or index
}

// alternative is a list of schemas that all apply. Those of "anyOf" and "oneOf" are in
// alternatives of their own.
type alternative struct {
	all  []map[string]any
	leaf *jsonschema.Resolved // what they say about scalars; nil until it is needed
}

// conditions is a list of alternatives; an empty one takes no value.
type conditions [][]map[string]any

// anything has one alternative without schemas.
func anything() conditions { return conditions{nil} }

// expand returns the alternatives of a schema.
func (s *Schema) expand(doc any) conditions {
	steps := 0
	return s.alternatives(doc, &steps)
}

func (s *Schema) alternatives(doc any, steps *int) conditions {
	if *steps++; *steps > maxSteps {
		return anything()
	}
	if doc == false {
		return conditions{}
	}
	schema, ok := doc.(map[string]any)
	if !ok {
		return anything()
	}
	out := conditions{{schema}}
	if ref, ok := schema["$ref"].(string); ok {
		out = out.and(s.alternatives(s.at(ref), steps))
	}
	for _, part := range listOf(schema["allOf"]) {
		out = out.and(s.alternatives(part, steps))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if schema[key] == nil {
			continue
		}
		var one conditions
		for _, part := range listOf(schema[key]) {
			one = append(one, s.alternatives(part, steps)...)
		}
		out = out.and(one)
	}
	return out
}

// and combines alternatives: one of each applies.
func (c conditions) and(others conditions) conditions {
	if len(c)*len(others) > maxAlternatives {
		return c
	}
	out := conditions{}
	for _, a := range c {
		for _, b := range others {
			out = append(out, slices.Concat(a, b))
		}
	}
	return out
}

// at returns the part of the schema that a reference names; true, which takes any value, if
// there is none.
func (s *Schema) at(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return true
	}
	here := s.doc
	for _, step := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if path == "" {
			break
		}
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		o, _ := here.(map[string]any)
		if here = o[step]; here == nil {
			return true
		}
	}
	return here
}

// node joins alternatives of several origins; nil if there are too many.
func (s *Schema) node(of []conditions) *node {
	n := &node{schema: s, known: map[string]*node{}}
	for _, c := range of {
		for _, all := range c {
			if len(n.alternatives) == maxAlternatives {
				return nil
			}
			n.alternatives = append(n.alternatives, &alternative{all: all})
		}
	}
	return n
}

// once returns a node that was made before, or makes it.
func (n *node) once(key string, build func() *node) *node {
	if n == nil {
		return nil
	}
	made, ok := n.known[key]
	if !ok {
		made = build()
		n.known[key] = made
	}
	return made
}

// only returns the node with the alternatives that take this type.
func (n *node) only(kind string) *node {
	return n.once("="+kind, func() *node {
		less := &node{schema: n.schema, known: map[string]*node{}}
		for _, a := range n.alternatives {
			if a.takes(kind) {
				less.alternatives = append(less.alternatives, a)
			}
		}
		return less
	})
}

// takes reports whether a value of this type may come.
func (n *node) takes(kind string) bool {
	return n == nil || slices.ContainsFunc(n.alternatives, func(a *alternative) bool { return a.takes(kind) })
}

// takesStart reports whether the beginning of a string fits, too. A string with one of
// these keywords fits as a whole only.
func (n *node) takesStart() bool {
	return n == nil || slices.ContainsFunc(n.alternatives, func(a *alternative) bool {
		return a.takes("string") && !slices.ContainsFunc(a.all, func(schema map[string]any) bool {
			return slices.ContainsFunc([]string{"enum", "const", "pattern", "format", "contentEncoding"}, func(key string) bool { return schema[key] != nil })
		})
	})
}

// fits reports whether a complete scalar fits.
func (n *node) fits(text []byte) bool {
	if n == nil {
		return true
	}
	var v any
	return json.Unmarshal(text, &v) == nil && slices.ContainsFunc(n.alternatives, func(a *alternative) bool { return a.fits(v) })
}

// property returns the place of a property's value.
func (n *node) property(name string) *node {
	has := func(key, name string) bool { return n != nil && n.has(key, name) }
	build := func() *node {
		return n.part(func(schema map[string]any) []any { return propertyOf(schema, name) })
	}
	switch {
	case has("properties", name):
		return n.once("."+name, build)
	case has("patternProperties", ""):
		return build() // not kept: there may be as many names as the answer is long
	}
	return n.once("*", build)
}

// has reports whether a keyword has this name; with an empty name, whether it is there.
func (n *node) has(key, name string) bool {
	return slices.ContainsFunc(n.alternatives, func(a *alternative) bool {
		return slices.ContainsFunc(a.all, func(schema map[string]any) bool {
			parts, _ := schema[key].(map[string]any)
			return name == "" && parts != nil || parts[name] != nil
		})
	})
}

// propertyOf returns the schemas of a property's value.
func propertyOf(schema map[string]any, name string) (parts []any) {
	properties, _ := schema["properties"].(map[string]any)
	if part, ok := properties[name]; ok {
		parts = append(parts, part)
	}
	patterns, _ := schema["patternProperties"].(map[string]any)
	for pattern, part := range patterns {
		if re, err := regexp.Compile(pattern); err == nil && re.MatchString(name) {
			parts = append(parts, part)
		}
	}
	if rest, ok := schema["additionalProperties"]; ok && parts == nil {
		parts = append(parts, rest)
	}
	return parts
}

// item returns the place of a list's item. Those behind the ones that the schema lists share
// a place.
func (n *node) item(index int) *node {
	if n == nil {
		return nil
	}
	most := 0
	for _, a := range n.alternatives {
		for _, schema := range a.all {
			listed, _ := itemsOf(schema)
			most = max(most, len(listed))
		}
	}
	index = min(index, most)
	return n.once("#"+strconv.Itoa(index), func() *node {
		return n.part(func(schema map[string]any) []any {
			listed, rest := itemsOf(schema)
			switch {
			case index < len(listed):
				return listed[index : index+1]
			case rest != nil:
				return []any{rest}
			}
			return nil
		})
	})
}

// itemsOf returns the schemas of a list's first items, and the one of the others. "items" may
// be a list itself, as in draft 7.
func itemsOf(schema map[string]any) (listed []any, rest any) {
	if list, ok := schema["items"].([]any); ok {
		return list, schema["additionalItems"]
	}
	return listOf(schema["prefixItems"]), schema["items"]
}

// part returns the place of a part of the value. of returns the schemas that apply to it.
func (n *node) part(of func(schema map[string]any) []any) *node {
	var all []conditions
	for _, a := range n.alternatives {
		c := anything()
		for _, schema := range a.all {
			for _, part := range of(schema) {
				c = c.and(n.schema.expand(part))
			}
		}
		all = append(all, c)
	}
	return n.schema.node(all)
}

func (a *alternative) takes(kind string) bool {
	return !slices.ContainsFunc(a.all, func(schema map[string]any) bool {
		if one, ok := schema["const"]; ok && typeOf(one) != kind {
			return true
		}
		if list, ok := schema["enum"].([]any); ok && !slices.ContainsFunc(list, func(v any) bool { return typeOf(v) == kind }) {
			return true
		}
		switch t := schema["type"].(type) {
		case string:
			return !isOf(kind, t)
		case []any:
			return !slices.ContainsFunc(t, func(t any) bool { s, _ := t.(string); return isOf(kind, s) })
		}
		return false
	})
}

func isOf(kind, t string) bool { return kind == t || kind == "number" && t == "integer" }

// typeOf returns the type of a value of the schema.
func typeOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case nil:
		return "null"
	}
	return "number"
}

// scalars are the keywords that a scalar must fit.
var scalars = []string{"type", "enum", "const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern"}

func (a *alternative) fits(v any) bool {
	if a.leaf == nil {
		a.leaf = leafOf(a.all)
	}
	return a.leaf.Validate(v) == nil
}

// leafOf returns what schemas say about a scalar. If that can't be read, any scalar fits.
func leafOf(all []map[string]any) *jsonschema.Resolved {
	var leaf jsonschema.Schema
	for _, schema := range all {
		part := maps.Clone(schema)
		maps.DeleteFunc(part, func(key string, _ any) bool { return !slices.Contains(scalars, key) })
		var read jsonschema.Schema
		raw, err := json.Marshal(part)
		if err == nil {
			err = json.Unmarshal(raw, &read)
		}
		if err == nil {
			leaf.AllOf = append(leaf.AllOf, &read)
		}
	}
	resolved, err := leaf.Resolve(nil)
	if err != nil {
		resolved, _ = (&jsonschema.Schema{}).Resolve(nil)
	}
	return resolved
}

// kindOf returns the type of a value that begins with a character.
func kindOf(c byte) string {
	switch c {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if c == '-' || c >= '0' && c <= '9' {
		return "number"
	}
	return ""
}

func listOf(v any) []any { list, _ := v.([]any); return list }
