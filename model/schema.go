package model

import (
	"encoding/json"
	"fmt"

	"github.com/fermata-agents/fermata/agent"
)

// InputSchema is a tool's schema as adapters send it: as it was written, and that
// of any object where it is empty. Demanded are the keys without which the
// provider refuses a schema, each with the JSON that it gets where it is missing.
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

// OutputSchema takes the schema of an answer apart, for an adapter to see whether
// its provider can hold a model to it; false if it is not the schema of an
// object, of which every provider's must be. The tree is for looking. What is
// sent is plain: it keeps the order of the properties, which models follow. Both
// lack the keywords that only name the schema itself.
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
