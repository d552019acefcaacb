package schemacost

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Cycle returns why holding a value to a JSON Schema may never end. It is empty if it ends.
// {"$ref":"#"} leads back to itself forever, which ends the process, and some schemas lead on
// so often that it is the same. A schema that goes down in the value each time ends with the
// value: lists and trees are such. Only the references "#" and "#/…" can be followed here, so
// any other one is a reason too. Give the schema as its reader writes it: readers take some
// things for a $ref that are not written so.
func Cycle(schema []byte) string {
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
