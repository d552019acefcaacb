package flow

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Overlay asks a person, as [Ask] does, what to change in state, and changes it. The answer is a JSON object
// with some of state's fields. Each replaces the field of that name, a list as a whole; fields that the
// answer does not name stay (OA-41, OA-42). T is a struct, or a map with texts as keys.
//
// The changed state has to fit AskOptions.Schema, or the schema of T. An answer with a field that does not
// fit, or that T does not have, is refused, and the run waits on (OA-43). Where only several fields together
// break a schema of your own, the person is asked again, in a step with "_again" behind its name.
//
// If AskOptions.Context is empty, the person sees the state. A Default is such an object, too: {} changes
// nothing. A field that JSON leaves out, such as an unexported one, is zero after a change. Errors are those
// of Ask, and leave state as it is.
func Overlay[T any](c Context, question string, state *T, o *AskOptions) error {
	if o == nil {
		o = &AskOptions{}
	}
	before, err := json.Marshal(*state)
	if err != nil {
		return fmt.Errorf("the state of the question %.40q is no JSON: %w", question, err)
	}
	whole := o.Schema
	if len(whole) == 0 {
		if whole, err = schemaOf[T](nil); err != nil {
			return err
		}
	}
	some, err := ofSome(whole)
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the schema of the state that the question %.40q is about can't be used: %w", question, err)
	}
	asked := *o
	asked.Context, asked.Schema = or(o.Context, string(before)), some
	if err := checkAsk[json.RawMessage](question, &asked, some); err != nil {
		return err
	}
	return ask(c, question, &asked, o.Choices, some, func(text string) error {
		fields, err := accept[json.RawMessage](text, &asked)
		if err != nil {
			return err
		}
		after, err := overlaid(before, fields)
		if err != nil {
			return err
		}
		if why := model.Fits(whole, after); why != "" {
			return errors.New(plain(why))
		}
		var changed T
		if err := json.Unmarshal(after, &changed); err != nil {
			return err
		}
		*state = changed
		return nil
	})
}

// ofSome returns the schema of an object that needs none of its fields.
func ofSome(schema json.RawMessage) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(schema, &object); err != nil {
		return nil, err
	}
	if string(object["type"]) != `"object"` {
		return nil, errors.New("it has to have the type object")
	}
	delete(object, "required")
	return json.Marshal(object)
}

// overlaid returns a JSON object in which some fields are replaced.
func overlaid(object, fields json.RawMessage) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(fields, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}
