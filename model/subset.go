package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Subset is the part of JSON Schema that a provider accepts. The zero value accepts
// nothing.
type Subset struct {
	// Takes are the accepted keywords. Each has a function that reports whether a value
	// is accepted; nil accepts every value. Other keywords are left out.
	Takes map[string]func(value any) bool
	// Closed means that the provider requires "additionalProperties": false of every
	// object. It is added to a schema that does not mention other properties.
	Closed bool
}

// Limits for schemas whose references are replaced by their targets. References within
// references can double a schema each time.
const (
	maxNodes = 4000
	maxRefs  = 32
)

// Convert returns a schema in the provider's form, with its properties in order. Keywords
// that the provider does not accept are left out, and references are replaced by their
// targets. Every answer that fits the schema also fits the result, except for properties
// that the schema does not mention and Closed forbids. whole reports whether only names
// of the schema were removed. If it is false, adapters also put the schema into words,
// see [OutputInWords]. fit is nil if there is no such form.
func (s Subset) Convert(schema json.RawMessage) (fit json.RawMessage, whole bool) {
	f := &fitting{Subset: s, root: schema}
	fit, ok := f.node(schema, nil)
	if !ok {
		return nil, false
	}
	written, _ := readObject(schema)
	for _, key := range names {
		if written.values[key] != nil {
			written.values[key] = nil
		}
	}
	return fit, bytes.Equal(fit, compact(written.raw()))
}

// names are the keywords that only name a schema.
var names = []string{"$schema", "$id"}

type fitting struct {
	Subset
	root  json.RawMessage
	nodes int
	every bool // every keyword is accepted
	lost  bool // the result says less, beyond keywords that are not accepted
}

// node rewrites a schema or a part of one. refs are the references that led to it.
func (f *fitting) node(raw json.RawMessage, refs []string) (json.RawMessage, bool) {
	if f.nodes++; f.nodes > maxNodes {
		return nil, false
	}
	if string(compact(raw)) == "true" {
		return json.RawMessage(`{}`), true
	}
	in, ok := readObject(raw)
	if !ok {
		return nil, false
	}
	if in, refs, ok = f.follow(in, refs); !ok {
		return nil, false
	}
	f.rename(&in)
	out := object{values: map[string]json.RawMessage{}}
	for _, key := range in.keys {
		if value, ok := f.keyword(key, in.values[key], refs); ok {
			out.set(key, value)
		}
	}
	// Only beside properties: an object without them may have any, and would become empty.
	if f.Closed && out.values["properties"] != nil && in.values["additionalProperties"] == nil {
		out.set("additionalProperties", json.RawMessage(`false`))
	}
	if f.every && out.value("type") == "array" && out.values["items"] == nil {
		out.set("items", json.RawMessage(`{}`)) // some providers require it
	}
	return out.raw(), true
}

// follow replaces a reference by its target, with the keywords beside the reference
// added. If a reference leads to itself, only the type remains.
func (f *fitting) follow(in object, refs []string) (object, []string, bool) {
	for in.values["$ref"] != nil {
		ref, _ := in.value("$ref").(string)
		target, ok := f.at(ref)
		if !ok || len(refs) > maxRefs {
			return in, refs, false
		}
		if slices.Contains(refs, ref) {
			f.lost = true
			stub := object{values: map[string]json.RawMessage{}}
			if kind := target.values["type"]; kind != nil {
				stub.set("type", kind)
			}
			return stub, refs, true
		}
		refs = append(refs[:len(refs):len(refs)], ref)
		for _, key := range in.keys {
			if key != "$ref" {
				target.set(key, in.values[key])
			}
		}
		in = target
	}
	return in, refs, true
}

// at returns the target of a reference within the schema.
func (f *fitting) at(ref string) (object, bool) {
	path, ok := strings.CutPrefix(ref, "#")
	here := f.root
	for _, step := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if step == "" {
			continue
		}
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		o, isObject := readObject(here)
		if here = o.values[step]; !isObject || here == nil {
			return object{}, false
		}
	}
	o, isObject := readObject(here)
	return o, ok && isObject
}

// rename replaces keywords that the provider lacks by others that mean the same.
func (f *fitting) rename(in *object) {
	move := func(from, to string, as func(json.RawMessage) json.RawMessage) {
		_, has := f.Takes[from]
		_, takes := f.Takes[to]
		if value := in.values[from]; value != nil && !has && takes && in.values[to] == nil {
			in.values[from] = nil
			in.set(to, as(value))
		}
	}
	move("const", "enum", func(v json.RawMessage) json.RawMessage { return slices.Concat([]byte("["), v, []byte("]")) })
	move("oneOf", "anyOf", func(v json.RawMessage) json.RawMessage { return v })
}

// keyword rewrites the value of one keyword; false if it is left out.
func (f *fitting) keyword(key string, raw json.RawMessage, refs []string) (json.RawMessage, bool) {
	may, takes := f.Takes[key]
	if raw == nil || !takes && (!f.every || key == "$defs" || key == "definitions") {
		return nil, false
	}
	text := string(compact(raw))
	switch key {
	case "properties", "patternProperties", "dependentSchemas":
		return f.properties(raw, refs)
	case "anyOf", "oneOf", "allOf", "prefixItems":
		return f.list(raw, refs)
	case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems":
		if text != "false" && (text != "true" || key == "items") {
			return f.node(raw, refs)
		}
	}
	var value any
	if json.Unmarshal(raw, &value) != nil || may != nil && !may(value) {
		return nil, false
	}
	return compact(raw), true
}

func (f *fitting) properties(raw json.RawMessage, refs []string) (json.RawMessage, bool) {
	in, ok := readObject(raw)
	for _, name := range in.keys {
		part, fits := f.node(in.values[name], refs)
		if !fits {
			part, f.lost = json.RawMessage(`{}`), true
		}
		in.values[name] = part
	}
	return in.raw(), ok
}

func (f *fitting) list(raw json.RawMessage, refs []string) (json.RawMessage, bool) {
	list, ok := rawList(raw)
	for i, part := range list {
		fit, fits := f.node(part, refs)
		if !fits {
			f.lost = true
			return nil, false
		}
		list[i] = fit
	}
	return compact(rawOf(list)), ok
}

// OutputInWords returns the instructions with an answer's schema at their end. Adapters
// send it if the provider's own format can't express the whole schema. tools says whether
// the model has tools.
func OutputInWords(instructions string, schema json.RawMessage, tools bool) string {
	answer := "Your answer"
	if tools {
		answer = "Your final answer, the one in which you call no tool,"
	}
	words := answer + " must be JSON that fits the JSON Schema below, and nothing else: no text around it, and no Markdown.\n\n" + string(compact(schema))
	if strings.TrimSpace(instructions) == "" {
		return words
	}
	return instructions + "\n\n" + words
}
