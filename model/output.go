package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/rawjson"
	"github.com/fermata-agents/fermata/internal/schemacost"
)

// OutputOf returns the JSON Schema of a Go type, for an agent's output. `json` tags name
// the properties, and `jsonschema` tags describe them. A property without omitempty or
// omitzero is required. A list or a pointer at the root is never null, and a [json.RawMessage] may
// be any JSON. OutputOf panics if JSON can't represent the type, such as a channel: call it where the
// agent is defined.
func OutputOf[T any]() json.RawMessage {
	// Otherwise a json.RawMessage would be a list of bytes.
	schema, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {}}})
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

// CheckOutput returns an [agent.CodeInvalidInput] error if no answer can be checked
// against a schema. An empty schema is valid: it means free text.
func CheckOutput(schema json.RawMessage) error {
	if len(schema) == 0 {
		return nil
	}
	_, err := resolve(schema)
	return err
}

// Fits returns why a value does not fit a schema; empty if it fits.
func Fits(schema, value json.RawMessage) string {
	s, err := resolve(schema)
	if err != nil {
		return err.Error()
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return "it is not JSON: " + err.Error()
	}
	if err := s.Validate(v); err != nil {
		return shorten(err.Error()) // the error may quote the value
	}
	return ""
}

// resolved caches schemas by their text: a process checks with the same few in every turn.
var resolved, _ = lru.New[string, *jsonschema.Resolved](32)

// maxCached is the length of the longest schema that is cached, in bytes. In memory a schema takes up
// to 300 times its length.
const maxCached = 8 << 10

// resolve returns a schema that values can be checked against.
func resolve(schema json.RawMessage) (*jsonschema.Resolved, error) {
	if known, ok := resolved.Get(string(schema)); ok {
		return known, nil
	}
	s, err := resolveNew(schema)
	if err == nil && len(schema) <= maxCached {
		resolved.Add(string(schema), s)
	}
	return s, err
}

func resolveNew(schema json.RawMessage) (*jsonschema.Resolved, error) {
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
	var r *jsonschema.Resolved
	if err == nil {
		r, err = s.Resolve(nil)
	}
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "output is a JSON Schema that can't be used: %w", err).WithPath("output")
	}
	return r, nil
}
