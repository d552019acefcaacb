package standin

import (
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// OddTools are tools whose schemas some provider refuses as they are.
var OddTools = []agent.ToolSpec{
	odd("either", `{"type":"object","anyOf":[{"properties":{"id":{"type":"integer"}},"required":["id"]},{"properties":{"name":{"type":"string"}},"required":["name"]}]}`),
	odd("exactly_one", `{"oneOf":[{"type":"object","properties":{"a":{"type":"string"},"kind":{"const":"a"}},"required":["a","kind"]},{"$ref":"#/$defs/b"}],
		"$defs":{"b":{"type":"object","properties":{"b":{"type":"string"},"kind":{"const":"b"}},"required":["b","kind"]}}}`),
	odd("all", `{"type":"object","properties":{"a":{"type":"string"}},"allOf":[{"properties":{"b":{"type":"string"}},"required":["b"]}],"not":{"required":["c"]}}`),
	odd("reference", `{"$ref":"#/definitions/in","definitions":{"in":{"type":"object","properties":{"x":{"$ref":"#/definitions/x","description":"which x","default":1}}},"x":{"type":"integer"}}}`),
	odd("recursion", `{"type":"object","properties":{"next":{"$ref":"#","description":"the next one"}}}`),
	odd("list", `{"type":"object","properties":{"all":{"type":"array"},"any":true}}`),
	odd("old", `{"type":"object","properties":{"n":{"type":"integer","minimum":0,"exclusiveMinimum":true}}}`),
}

func odd(name, schema string) agent.ToolSpec {
	return agent.ToolSpec{Name: name, Description: "An odd tool.", Input: json.RawMessage(schema)}
}

// Faults returns what providers refuse in the schema of a tool.
func Faults(schema json.RawMessage) []string {
	var root map[string]any
	if json.Unmarshal(schema, &root) != nil {
		return []string{"it is no object"}
	}
	var found []string
	if root["type"] != "object" {
		found = append(found, "the root is not of type object")
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref"} {
		if _, ok := root[key]; ok {
			found = append(found, key+" at the root")
		}
	}
	return append(found, faultsIn(root)...)
}

func faultsIn(node any) []string {
	var found []string
	switch node := node.(type) {
	case []any:
		for _, v := range node {
			found = append(found, faultsIn(v)...)
		}
	case map[string]any:
		_, ref := node["$ref"]
		if ref && len(node) > 1 {
			found = append(found, "$ref beside other keywords")
		}
		if _, items := node["items"]; node["type"] == "array" && !items {
			found = append(found, "a list without items")
		}
		if _, old := node["exclusiveMinimum"].(bool); old {
			found = append(found, "exclusiveMinimum of an old draft")
		}
		if properties, ok := node["properties"].(map[string]any); ok {
			for name, v := range properties {
				if v == true {
					found = append(found, name+" is true")
				}
			}
		}
		for _, v := range node {
			found = append(found, faultsIn(v)...)
		}
	}
	return found
}
