package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Overlay asks a person, as [Ask] does, what to change in state, and changes it. The answer is a JSON object
// with some of state's fields. Each replaces the field of that name, a list or an object as a whole; fields
// that the answer does not name stay, also what others have changed meanwhile (OA-41, OA-42). T is a struct,
// or a map with texts as keys.
//
// The changed state has to fit AskOptions.Schema, or the schema of T. An answer with a field that does not
// fit, or that T does not have, is refused, and the run waits on (OA-43). What only the whole state can show
// is asked again, in a step with "_again" behind its name: fields that break a schema together, a schema
// whose words the runtime does not compare, a field that only a newer build has.
//
// If AskOptions.Context is empty, the person sees the state, or its first 4,000 bytes. A Default is such an
// object, too: {} changes nothing. Errors are those of Ask, and leave state as it is; a T of another kind
// is an [agent.CodeInvalidInput]. A Default comes again if it can't be used, so it is an error then:
// [agent.CodeJoinFailed] if its fields can't be put into state, and [agent.CodeBadOutput] if the changed
// state does not fit.
func Overlay[T any](c Context, question string, state *T, o *AskOptions) error {
	if o == nil {
		o = &AskOptions{}
	}
	own, err := fieldsOf[T](state)
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the question %.40q: %w", question, err)
	}
	before, err := json.Marshal(*state)
	if err != nil {
		return fmt.Errorf("the state of the question %.40q is no JSON: %w", question, err)
	}
	whole, asked := own, *o
	if len(o.Schema) > 0 {
		whole = o.Schema
	}
	if asked.Schema, err = ofSome(own, whole); err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the schema of the question %.40q can't be used: %w", question, err)
	}
	asked.Context = or(o.Context, beginning(string(before)))
	if err := checkAsk[json.RawMessage](question, &asked, asked.Schema); err != nil {
		return err
	}
	return ask(c, question, &asked, o.Choices, asked.Schema, func(text string) error {
		fields, err := accept[json.RawMessage](text, &asked)
		if err != nil {
			return err
		}
		var named map[string]json.RawMessage
		if err := json.Unmarshal(fields, &named); err != nil || len(named) == 0 {
			return err
		}
		changed, err := overlaid(*state, fields, named)
		if err != nil {
			return agent.Errorf(agent.CodeJoinFailed, "%w", err)
		}
		if why := breaks(o.Schema, changed); why != "" {
			return agent.Errorf(agent.CodeBadOutput, "%s", why)
		}
		*state = changed
		return nil
	})
}

// breaks returns why a state does not fit a schema of its author; a type is what its own schema says.
func breaks(schema json.RawMessage, state any) string {
	if len(schema) == 0 {
		return ""
	}
	raw, err := json.Marshal(state)
	if err != nil {
		return err.Error()
	}
	return plain(model.Fits(schema, raw))
}

// maxShown bounds how much of a state a person sees, in bytes; a question's context has at most 4 KiB.
const maxShown = 4000

// beginning returns a text, or the beginning of a long one.
func beginning(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + " …"
}

// fieldsOf returns the schema of T, if an answer can name its fields.
func fieldsOf[T any](state *T) (json.RawMessage, error) {
	t := reflect.TypeFor[T]()
	switch {
	case state == nil:
		return nil, errors.New("the state is nil: give a pointer to one")
	case t.Kind() != reflect.Struct && (t.Kind() != reflect.Map || t.Key().Kind() != reflect.String):
		return nil, fmt.Errorf("the state is a %s, and has to be a struct or a map with texts as keys", t)
	case t.Kind() == reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if f.Anonymous && f.Type.Kind() == reflect.Pointer {
				return nil, fmt.Errorf("the state embeds a pointer, %s: embed the struct itself", f.Type)
			}
		}
	}
	return schemaOf[T](nil)
}

// ofSome returns the schema of an object with some of the fields: what whole says of each field, and of
// those that it does not mention what own says. What whole says of several together is left out.
func ofSome(own, whole json.RawMessage) (json.RawMessage, error) {
	type object struct {
		Type       json.RawMessage            `json:"type,omitempty"`
		Properties map[string]json.RawMessage `json:"properties,omitempty"`
		Patterns   json.RawMessage            `json:"patternProperties,omitempty"`
		Others     json.RawMessage            `json:"additionalProperties,omitempty"`
		Defs       json.RawMessage            `json:"$defs,omitempty"`
	}
	var all, some object
	if err := errors.Join(json.Unmarshal(own, &all), json.Unmarshal(whole, &some)); err != nil {
		return nil, err
	}
	if string(some.Type) != `"object"` {
		return nil, errors.New("it has to have the type object")
	}
	if len(all.Properties) > 0 { // a struct: it has no other fields
		for name, schema := range some.Properties {
			if _, has := all.Properties[name]; has {
				all.Properties[name] = schema
			}
		}
		some.Properties, some.Patterns, some.Others = all.Properties, nil, all.Others
	}
	return json.Marshal(some)
}

// overlaid returns a state in which the named fields are replaced.
func overlaid[T any](state T, fields json.RawMessage, named map[string]json.RawMessage) (T, error) {
	var answer T
	if err := json.Unmarshal(fields, &answer); err != nil {
		return state, err
	}
	to, from := reflect.ValueOf(&state).Elem(), reflect.ValueOf(answer)
	if to.Kind() == reflect.Map {
		all := reflect.MakeMap(to.Type())
		for _, m := range []reflect.Value{to, from} {
			for i := m.MapRange(); i.Next(); {
				all.SetMapIndex(i.Key(), i.Value())
			}
		}
		to.Set(all)
		return state, nil
	}
	for _, f := range reflect.VisibleFields(to.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name = or(name, f.Name); named[name] == nil || !f.IsExported() || name == "-" {
			continue
		}
		to.FieldByIndex(f.Index).Set(from.FieldByIndex(f.Index))
		delete(named, name)
	}
	for name := range named {
		return state, fmt.Errorf("there is no field %.40q", name)
	}
	return state, nil
}
