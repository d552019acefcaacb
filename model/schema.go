package model

import (
	"encoding/json"
	"fmt"

	"github.com/fermata-agents/fermata/agent"
)

// InputSchema returns a tool's schema for a request: as it was written, or that of any
// object if it is empty. demanded are keys that the provider requires, each with the JSON
// to use if the key is missing.
func InputSchema(t agent.ToolSpec, demanded map[string]string) (json.RawMessage, error) {
	input := t.Input
	if len(input) == 0 {
		input = json.RawMessage(`{}`)
	}
	var schema map[string]json.RawMessage
	if err := json.Unmarshal(input, &schema); err != nil || schema == nil {
		return nil, fmt.Errorf("the input of the tool %s is not a JSON Schema of an object", t.Name)
	}
	before := len(schema)
	for key, value := range demanded {
		if _, ok := schema[key]; !ok {
			schema[key] = json.RawMessage(value)
		}
	}
	if len(schema) == before {
		return input, nil
	}
	return json.Marshal(schema)
}

// OutputSchema parses the schema of an answer, so that an adapter sees whether its
// provider can enforce it. ok is false if it is not the schema of an object, which every
// provider requires. tree is for inspection. plain is for sending: it keeps the order of
// the properties, because models follow it. Both lack keywords that only name the schema.
func OutputSchema(raw json.RawMessage) (tree map[string]any, plain json.RawMessage, ok bool) {
	var root map[string]json.RawMessage
	if json.Unmarshal(raw, &tree) != nil || json.Unmarshal(raw, &root) != nil || tree["type"] != "object" {
		return nil, nil, false
	}
	for _, key := range []string{"$schema", "$id"} {
		delete(tree, key)
		delete(root, key)
	}
	plain, err := json.Marshal(root)
	return tree, plain, err == nil
}
