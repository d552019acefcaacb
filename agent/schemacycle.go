package agent

import (
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// SchemaCycle says why nobody who holds a value to a JSON Schema need come to an end; empty
// where one does. {"$ref":"#"} leads back to itself forever, which ends the process,
// and some schemas lead on so often that it is the same. One that goes down in the
// value each time, as those of lists and trees do, ends with it. Of references only
// "#" and "#/…" can be followed here; others are a reason too. The schema has to be as
// its reader writes it, since readers take for a $ref what is not written so.
func SchemaCycle(schema []byte) string {
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return ""
	}
	return wanderer{root}.all(root, true)
}

// wanderer goes through a schema as a value is led through it.
type wanderer struct{ root any }

// all looks at a schema and at every schema in it.
func (w wanderer) all(v any, top bool) string {
	var below []any
	switch v := v.(type) {
	case []any:
		below = v
	case map[string]any:
		below = values(v)
		ref, _ := v["$ref"].(string)
		_, named := v["$id"].(string)
		_, dynamic := v["$dynamicRef"].(string)
		if named && !top || dynamic || ref != "" && ref != "#" && !strings.HasPrefix(ref, "#/") {
			return "of references only a $ref to # or #/… can be used, without an $id below the top"
		}
		if left := maxSchemaSteps; !w.ends(v, &left) {
			return "it leads back to itself"
		}
	}
	for _, e := range below {
		if why := w.all(e, false); why != "" {
			return why
		}
	}
	return ""
}

// maxSchemaSteps is how far a schema may lead a value before it goes down in it: far
// more than schemas do that people write.
const maxSchemaSteps = 10_000

// ends reports whether a schema has judged a value, as far as it does not go down in
// it, within so many steps.
func (w wanderer) ends(v any, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	schema, _ := v.(map[string]any)
	var same []any // the schemas that the same value is held to
	for _, key := range []string{"not", "if", "then", "else"} {
		same = append(same, schema[key])
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := schema[key].([]any)
		same = append(same, list...)
	}
	for _, key := range []string{"dependentSchemas", "dependencies"} {
		object, _ := schema[key].(map[string]any)
		same = append(same, values(object)...)
	}
	if ref, ok := schema["$ref"].(string); ok {
		same = append(same, w.at(ref))
	}
	for _, s := range same {
		if s != nil && !w.ends(s, left) {
			return false
		}
	}
	return true
}

// SchemaSteps is how many steps it takes at most to hold one part of a value to a schema, the
// value being nested so deep. Times the parts of the value, it bounds what a check costs. It
// is at most [UnboundedSteps]: schemas of references that lead on to others twice each take
// more steps than anybody has. The schema has to be one that [SchemaCycle] and [HeavyPatterns]
// take. It is not for workflows.
func SchemaSteps(schema []byte, depth int) int {
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return 0
	}
	c := counter{wanderer{root}, map[place]int{}}
	return c.steps(root, depth)
}

// UnboundedSteps are more steps than anybody takes.
const UnboundedSteps = 1 << 40

// at is a schema, and how deep the value under it is nested at most.
type place struct {
	schema uintptr
	depth  int
}

// counter counts the steps of schemas, each once.
type counter struct {
	wanderer
	known map[place]int
}

// Keywords that hold the same value to schemas, and those that hold what is in it.
var (
	sameKeys  = []string{"not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"}
	belowKeys = []string{
		"properties", "patternProperties", "additionalProperties", "propertyNames", "unevaluatedProperties",
		"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains",
	}
	namedKeys = []string{"properties", "patternProperties", "dependentSchemas", "dependencies"} // of these, each has a name
)

func (c counter) steps(v any, depth int) int {
	schema, ok := v.(map[string]any)
	if !ok {
		return 1
	}
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
		n = min(UnboundedSteps, n+c.steps(c.wanderer.at(ref), depth))
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

// add adds the steps of a keyword's schema, or of its schemas.
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
		n = min(UnboundedSteps, n+c.steps(one, depth))
	}
	return n
}

// values are an object's, in the order of their names.
func values(object map[string]any) (list []any) {
	names := slices.Sorted(maps.Keys(object)) //workflowcheck:ignore the order of the map is gone after sorting
	for _, name := range names {
		list = append(list, object[name])
	}
	return list
}

var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

// at is what a reference leads to; nil if it leads nowhere.
func (w wanderer) at(ref string) any {
	pointer, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil {
		return nil
	}
	v := w.root
	for _, name := range strings.Split(pointer, "/")[1:] {
		switch in := v.(type) {
		case map[string]any:
			v = in[unescaped.Replace(name)]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}
