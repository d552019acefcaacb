package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/model"
)

// What a provider does not take is left out of a schema, and nothing else.
func TestFit(t *testing.T) {
	subset := model.Subset{Takes: map[string]func(any) bool{
		"type": nil, "properties": nil, "items": nil, "anyOf": nil, "enum": nil, "description": nil, "required": nil, "additionalProperties": nil,
		"format": func(v any) bool { return v == "date" },
	}}
	closed := subset
	closed.Closed = true
	for _, c := range []struct {
		subset            model.Subset
		name, schema, fit string
		whole             bool
	}{
		{subset, "order", `{"$schema":"x","type":"object","properties":{"z":{"type":"string"},"a":{"format":"date"}}}`, `{"type":"object","properties":{"z":{"type":"string"},"a":{"format":"date"}}}`, true},
		{subset, "bounds", `{"type":"string","minLength":1,"format":"color"}`, `{"type":"string"}`, false},
		{subset, "const", `{"const":"x"}`, `{"enum":["x"]}`, false},
		{subset, "oneOf", `{"oneOf":[{"type":"null"},true]}`, `{"anyOf":[{"type":"null"},{}]}`, false},
		{subset, "reference", `{"properties":{"a":{"$ref":"#/$defs/a~1b","description":"here"}},"$defs":{"a/b":{"type":"integer","description":"there"}}}`,
			`{"properties":{"a":{"type":"integer","description":"here"}}}`, false},
		{subset, "recursion", `{"type":"object","properties":{"next":{"$ref":"#"}}}`, `{"type":"object","properties":{"next":{"type":"object","properties":{"next":{"type":"object"}}}}}`, false},
		{subset, "nothing there", `{"$ref":"#/$defs/x"}`, ``, false},
		{subset, "another file", `{"properties":{"a":{"$ref":"https://x.example/y"}}}`, `{"properties":{"a":{}}}`, false},
		{subset, "no object", `[]`, ``, false},
		{closed, "closed", `{"type":"object","properties":{"a":{"properties":{}}}}`, `{"type":"object","properties":{"a":{"properties":{},"additionalProperties":false}},"additionalProperties":false}`, false},
		{closed, "open", `{"properties":{},"additionalProperties":true}`, `{"properties":{},"additionalProperties":true}`, true},
	} {
		fit, whole := c.subset.Convert(json.RawMessage(c.schema))
		require.Equal(t, c.fit, string(fit), c.name)
		require.Equal(t, c.whole, whole, c.name)
	}
}

// References that double a schema each time can't fill a process.
func TestFitIsBounded(t *testing.T) {
	var defs []string
	for c := 'a'; c < 'z'; c++ {
		next := string(c + 1)
		defs = append(defs, `"`+string(c)+`":{"properties":{"l":{"$ref":"#/$defs/`+next+`"},"r":{"$ref":"#/$defs/`+next+`"}}}`)
	}
	subset := model.Subset{Takes: map[string]func(any) bool{"properties": nil}}
	fit, _ := subset.Convert(json.RawMessage(`{"$ref":"#/$defs/a","$defs":{` + strings.Join(defs, ",") + `,"z":{}}}`))
	require.Less(t, len(fit), 1<<20)
}
