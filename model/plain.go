package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fermata-agents/fermata/agent"
)

// quotedInput is the largest schema that a tool's description quotes, in bytes.
const quotedInput = 4 << 10

// PlainTool returns a tool whose input schema every provider accepts: an object without
// alternatives at its root and without references, in the current draft of JSON Schema.
// With any other schema, some providers refuse every request of the agent. The new schema
// may accept more than the old one, so the description quotes the old one, and the
// worker that runs the tool checks the arguments. A tool with such a schema already stays as it is.
func PlainTool(t agent.ToolSpec) agent.ToolSpec {
	if _, ok := readObject(t.Input); !ok {
		return t
	}
	f := &fitting{root: t.Input, every: true}
	input, ok := f.node(t.Input, nil)
	if ok = ok && current(t.Input); ok {
		root, _ := readObject(input)
		input = f.merge(root, 0).raw()
	} else {
		input = json.RawMessage(`{"type":"object"}`)
	}
	if bytes.Equal(input, compact(t.Input)) {
		return t
	}
	if written := compact(t.Input); (!ok || f.lost) && len(written) <= quotedInput {
		t.Description = strings.TrimSpace(t.Description + "\n\nThe arguments must fit this JSON Schema: " + string(written))
	}
	t.Input = input
	return t
}

// current reports whether a schema is of the current draft.
func current(raw json.RawMessage) bool {
	var s jsonschema.Schema
	return json.Unmarshal(raw, &s) == nil
}

// merge merges the alternatives at a root into one object. It has the properties of all
// alternatives, and requires those that all of them require.
func (f *fitting) merge(in object, depth int) object {
	// Some providers refuse these at the root. Without them the schema accepts more, never less.
	for _, key := range []string{"not", "enum", "const", "if", "then", "else"} {
		f.drop(&in, key)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		branches, ok := rawList(in.values[key])
		if !ok || depth > maxRefs {
			continue
		}
		f.drop(&in, key)
		var common []string
		first := true
		for _, raw := range branches {
			branch, _ := readObject(raw)
			if kind := branch.value("type"); kind != nil && kind != "object" {
				continue // arguments are always an object
			}
			branch = f.merge(branch, depth+1)
			f.join(&in, branch)
			switch required := branch.required(); {
			case key == "allOf":
				common = append(common, required...)
			case first:
				common = required
			default:
				common = slices.DeleteFunc(common, func(name string) bool { return !slices.Contains(required, name) })
			}
			first = false
		}
		in.require(common)
	}
	if depth == 0 && (in.values["type"] == nil || in.value("type") != "object") {
		in.set("type", json.RawMessage(`"object"`))
	}
	return in
}

func (f *fitting) drop(in *object, key string) {
	if in.values[key] != nil {
		in.values[key], f.lost = nil, true
	}
}

// join adds the properties of a branch. If two branches have different schemas for one
// property, it may fit either.
func (f *fitting) join(in *object, branch object) {
	more, ok := readObject(branch.values["properties"])
	if !ok {
		return
	}
	all, ok := readObject(in.values["properties"])
	if !ok {
		all = object{values: map[string]json.RawMessage{}}
	}
	for _, name := range more.keys {
		had, one := all.values[name], more.values[name]
		switch {
		case had == nil:
			all.set(name, one)
		case !bytes.Equal(had, one):
			all.set(name, slices.Concat([]byte(`{"anyOf":[`), had, []byte(","), one, []byte(`]}`)))
		}
	}
	in.set("properties", all.raw())
}

func (o object) required() []string {
	var names []string
	_ = json.Unmarshal(o.values["required"], &names) // anything but a list requires nothing
	return names
}

func (o *object) require(names []string) {
	all := o.required()
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	if len(all) > 0 {
		o.set("required", rawOf(all))
	}
}
