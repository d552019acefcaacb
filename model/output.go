package model

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/rawjson"
	"github.com/fermata-agents/fermata/internal/schemacost"
)

// OutputOf is the schema for an agent's output that a Go type has, as a tool's
// arguments have one: `json` tags name the properties, `jsonschema` tags describe them,
// and one without omitempty or omitzero must be there. A list or a pointer is never
// null at the root. It panics for a type that JSON can't have, such as a channel: call
// it where the agent is defined.
func OutputOf[T any]() json.RawMessage {
	schema, err := jsonschema.For[T](nil)
	if err == nil && len(schema.Types) == 2 && schema.Types[0] == "null" {
		schema.Type, schema.Types = schema.Types[1], nil
	}
	var raw json.RawMessage
	if err == nil {
		raw, err = json.Marshal(schema)
	}
	if err != nil {
		panic(fmt.Sprintf("the output of an agent: %v", err))
	}
	return raw
}

// CheckOutput refuses, with [agent.CodeInvalidInput], a schema for an agent's output
// that no answer could be held to. An empty one is none.
func CheckOutput(schema json.RawMessage) error {
	if len(schema) == 0 {
		return nil
	}
	_, err := resolve(schema)
	return err
}

// Fits says how a value does not fit a schema; empty means that it does.
func Fits(schema, value json.RawMessage) string {
	resolved, err := resolve(schema)
	if err != nil {
		return err.Error()
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return "it is not JSON: " + err.Error()
	}
	if err := resolved.Validate(v); err != nil {
		return shorten(err.Error()) // it may quote the value
	}
	return ""
}

func resolve(schema json.RawMessage) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if rawjson.Depth(schema) > rawjson.MaxWrittenDepth {
		return nil, agent.Errorf(agent.CodeInvalidInput, "output is nested more than %d levels deep", rawjson.MaxWrittenDepth).WithPath("output")
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "output is not a JSON Schema: %w", err).WithPath("output")
	}
	read, err := json.Marshal(s)
	if why := schemacost.Cycle(read); why != "" {
		err = errors.New(why)
	}
	var resolved *jsonschema.Resolved
	if err == nil {
		resolved, err = s.Resolve(nil)
	}
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "output is a JSON Schema that can't be used: %w", err).WithPath("output")
	}
	return resolved, nil
}
