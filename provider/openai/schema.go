package openai

import (
	"encoding/json"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// function is a tool in the form of Chat Completions. It keeps the order of a
// schema's properties, which models follow.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// functionOf is a tool, with what OpenAI misses in the schema of an object.
func functionOf(t agent.ToolSpec) (function, error) {
	t = model.PlainTool(t)
	input, err := model.InputSchema(t, map[string]string{"type": `"object"`, "properties": `{}`})
	return function{Name: t.Name, Description: t.Description, Parameters: input}, err
}

// format holds a model to a schema.
type format struct {
	Type   string          `json:"type,omitempty"` // in Responses, where there is no frame around it
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

// formatOf is the form of an output; false if a server can't be given its
// schema, which the runtime checks in any case. The model is held to it strictly
// where that is possible.
func formatOf(schema json.RawMessage) (format, bool) {
	tree, plain, ok := model.OutputSchema(schema)
	_, anyOf := tree["anyOf"]
	return format{Name: "output", Schema: plain, Strict: !anyOf && strict(tree)}, ok
}

// hold is the form of an output where the server is given one, and the instructions,
// with the schema in words where the form does not reach the model. OpenAI's models are
// told the schema of the form; other servers hold the model to it without a word, or
// ignore it.
func (m *Model) hold(req *model.Request) (f format, held bool, instructions string) {
	if len(req.Output) == 0 {
		return f, false, req.Instructions
	}
	f, held = formatOf(req.Output)
	held = held && (m.own || m.api == Responses || len(req.Tools) == 0)
	if held && m.own {
		return f, true, req.Instructions
	}
	return f, held, model.OutputInWords(req.Instructions, req.Output, len(req.Tools) > 0)
}

// jsonObjects are servers whose Chat Completions hold a model to JSON, but refuse a schema.
// They want the word JSON in the request, which the schema's words have.
var jsonObjects = []string{"api.deepseek.com:443"}

// objectsOnly reports whether the server knows the form of an object, but not of a schema.
func (m *Model) objectsOnly() bool { return !m.own && slices.Contains(jsonObjects, m.endpoint.Addr()) }

// What strict schemas may have (page "Structured outputs" of
// developers.openai.com/api/docs, as of 2026-11-21).
var (
	strictKeys = []string{"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs", "definitions",
		"description", "title", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}
	strictFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)

// strict reports whether a schema, or a part of one, is of the strict kind: every
// property of an object is required, and no other allowed.
func strict(node any) bool {
	s, ok := node.(map[string]any)
	if !ok || len(s) == 0 {
		return false
	}
	for key, value := range s {
		good := slices.Contains(strictKeys, key)
		switch key {
		case "items":
			good = strict(value)
		case "anyOf":
			list, ok := value.([]any)
			good = ok && !slices.ContainsFunc(list, func(n any) bool { return !strict(n) })
		case "properties", "$defs", "definitions":
			parts, ok := value.(map[string]any)
			good = ok
			for _, part := range parts {
				good = good && strict(part)
			}
		case "format":
			text, ok := value.(string)
			good = ok && slices.Contains(strictFormats, text)
		}
		if !good {
			return false
		}
	}
	return strictObject(s)
}

func strictObject(s map[string]any) bool {
	types, _ := s["type"].([]any)
	if s["type"] != "object" && s["properties"] == nil && !slices.Contains(types, any("object")) {
		return true
	}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for name := range properties {
		if !slices.Contains(required, any(name)) {
			return false
		}
	}
	return s["additionalProperties"] == false
}
