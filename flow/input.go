package flow

import (
	"encoding"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// CheckInput returns an [agent.CodeInvalidInput] error if a run's input does not fit the flow. It
// says which key is wrong, and has the schema. A start with such an input is refused.
func (f Flow) CheckInput(input string) error {
	if f.check == nil {
		return f.Err()
	}
	return f.check(input)
}

// checkOf returns what checks inputs. written means that the schema is not that of In.
func checkOf[In any](name string, schema json.RawMessage, written bool) func(string) error {
	if !written && !describes(inner[In]()) {
		schema = nil
	}
	return func(text string) error {
		why := ""
		if len(schema) > 0 {
			why = fits(schema, text)
		}
		if _, err := read[In](text, nil); why == "" && err != nil {
			why = err.Error()
		}
		if why == "" {
			return nil
		}
		if len(schema) > 0 {
			why += "; it has to fit this schema: " + cut(schema)
		}
		return agent.Errorf(agent.CodeInvalidInput, "start refused: the run's input does not fit the flow %s: %s", name, why).WithPath("input")
	}
}

// readInput returns the input of a run. Files that the function does not take are an error, since the
// function would otherwise complete without them. The log has the files, so each asking decides the
// same.
func readInput[In any](name, text string, files []agent.File) (in In, err error) {
	if _, ok := any(&in).(takesFiles); !ok && len(files) > 0 {
		return in, agent.Errorf(agent.CodeInvalidInput, "the run was started with %d files, and the flow %s takes none: start it without files (the function of a Go flow takes them as a flow.WithFiles)", len(files), name).WithPath("input")
	}
	if in, err = read[In](text, files); err != nil {
		return in, agent.Errorf(agent.CodeInvalidInput, "the run's input does not fit the flow: %w", err).WithPath("input")
	}
	return in, nil
}

// fits returns why a text does not fit a schema, as JSON or as a text.
func fits(schema json.RawMessage, text string) string {
	why := model.Fits(schema, json.RawMessage(text))
	if why == "" {
		return ""
	}
	if quoted, err := json.Marshal(text); err == nil && model.Fits(schema, quoted) == "" {
		return ""
	}
	return plain(why)
}

// place finds where in a schema a validator is: "validating root: validating /properties/number: ".
var place = regexp.MustCompile(`validating (root|/[^ ]*): `)

// plain returns what a validator says, with the key of the input for the places in the schema.
func plain(why string) string {
	all := place.FindAllStringSubmatchIndex(why, -1)
	if len(all) == 0 {
		return why
	}
	last := all[len(all)-1]
	if key := keyOf(why[last[2]:last[3]]); key != "" {
		return key + ": " + why[last[1]:]
	}
	return why[last[1]:]
}

// keyOf returns the key of the input that a part of a schema is for, such as "items[].file" for
// "/properties/items/items/properties/file".
func keyOf(part string) (key string) {
	words := strings.Split(part, "/")[1:]
	for len(words) > 0 {
		switch word := words[0]; {
		case word == "properties" && len(words) > 1:
			key, words = key+"."+words[1], words[1:]
		case word == "items":
			key += "[]"
		}
		words = words[1:]
	}
	return strings.TrimPrefix(key, ".")
}

// maxSchema bounds the schema in an error, in bytes.
const maxSchema = 2000

func cut(schema json.RawMessage) string {
	if len(schema) > maxSchema {
		return strings.ToValidUTF8(string(schema[:maxSchema]), "") + "…"
	}
	return string(schema)
}

// describes reports whether the schema of a type describes its JSON: a type that reads JSON by itself
// has the schema of what it is made of.
func describes(t reflect.Type) bool {
	byItself := func(of reflect.Type) bool {
		return of.Implements(reflect.TypeFor[json.Unmarshaler]()) || of.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return true
	case byItself(t) || byItself(reflect.PointerTo(t)):
		return false
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return t.Elem().Kind() != reflect.Uint8 && describes(t.Elem()) // bytes are a text
	case reflect.Pointer, reflect.Map:
		return describes(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			// An option such as ",string" writes the value otherwise.
			if _, options, _ := strings.Cut(f.Tag.Get("json"), ","); strings.Contains(options, "string") || !describes(f.Type) {
				return false
			}
		}
	}
	return true
}
