package openai

import (
	"encoding/json"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// function is a tool for Chat Completions. It keeps the order of a schema's properties,
// because models follow it.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// functionOf returns a tool, with what OpenAI requires in the schema of an object.
func functionOf(t agent.ToolSpec) (function, error) {
	t = model.PlainTool(t)
	input, err := model.InputSchema(t, map[string]string{"type": `"object"`, "properties": `{}`})
	return function{Name: t.Name, Description: t.Description, Parameters: input}, err
}

// format makes a server enforce a schema.
type format struct {
	Type   string          `json:"type,omitempty"` // only in Responses
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

// formatOf returns the format of an output; false if a server can't get its schema. The
// runtime checks the schema in any case. The format is strict if the schema allows that.
func formatOf(schema json.RawMessage) (format, bool) {
	tree, plain, ok := model.OutputSchema(schema)
	_, anyOf := tree["anyOf"]
	return format{Name: "output", Schema: plain, Strict: !anyOf && strict(tree)}, ok
}

// hold returns the format of an output, if the server gets one, and the instructions. The
// instructions contain the schema if the model itself does not see the format. OpenAI's
// models see it; other servers enforce it silently or ignore it.
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

// jsonObjects are servers whose Chat Completions enforce JSON but refuse a schema. They
// require the word JSON in the request; the schema in the instructions has it.
var jsonObjects = []string{"api.deepseek.com:443"}

// objectsOnly reports whether the server enforces JSON objects but no schemas.
func (m *Model) objectsOnly() bool { return !m.own && slices.Contains(jsonObjects, m.endpoint.Addr()) }

// The keywords of strict schemas (page "Structured outputs" of
// developers.openai.com/api/docs, as of 2026-11-21).
var (
	strictKeys = []string{"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs", "definitions",
		"description", "title", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}
	strictFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)

// strict reports whether a schema or a part of one is strict: all properties of an object
// are required, and no others are allowed.
func strict(node any) bool {
	s, ok := node.(map[string]any)
	if !ok || len(s) == 0 {
		return false
	}
	// Every keyword must be known: the server refuses the rest.
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
	// Strict schemas must require every property.
	for name := range properties {
		if !slices.Contains(required, any(name)) {
			return false
		}
	}
	return s["additionalProperties"] == false
}
