package schemacost

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Cycle returns why checking a value against a JSON Schema may never end. It is empty if
// it ends. {"$ref":"#"} leads back to itself forever and would end the process; some
// schemas repeat so often that the effect is the same. A schema that goes down into the
// value ends with the value: lists and trees are such. Only the references "#" and "#/…"
// are followed here, so any other is a reason, too. Pass the schema as its reader writes
// it: readers accept other spellings of $ref.
func Cycle(schema []byte) string {
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return ""
	}
	return wanderer{root}.all(root, true)
}

// wanderer follows a schema the way a value is checked.
type wanderer struct{ root any }

// all checks a schema and every schema in it.
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
		// An inner $id changes what "#" means, which at does not follow.
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

// maxSchemaSteps is how many steps a schema may take before it goes down into the value:
// far more than schemas that people write.
const maxSchemaSteps = 10_000

// ends reports whether a schema is done with a value within so many steps, without going
// down into it.
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

// values returns an object's values, in the order of their names.
func values(object map[string]any) (list []any) {
	names := slices.Sorted(maps.Keys(object)) //workflowcheck:ignore the order of the map is gone after sorting
	for _, name := range names {
		list = append(list, object[name])
	}
	return list
}

var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

// at returns what a reference leads to; nil if it leads nowhere.
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
