package schemacost

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCycle(t *testing.T) {
	for _, schema := range []string{
		`true`, `{}`, `{"type":"object","properties":{"$id":{"type":"string"},"$ref":{"type":"string"}}}`, `{"$id":"a","items":{"$ref":"#"}}`, `{"$ref":"#/none"}`, `{"$ref":"#/%zz"}`,
		`{"$ref":"#/$defs/tree","$defs":{"tree":{"properties":{"left":{"$ref":"#/$defs/tree"},"right":{"$ref":"#/$defs/tree"}}}}}`,
		`{"anyOf":[{"$ref":"#/$defs/a~1b%25"},{"$ref":"#/$defs/a~1b%25"},{"$ref":"#/anyOf/0"}],"$defs":{"a/b%":{"items":{"$ref":"#"}}}}`,
	} {
		require.Empty(t, Cycle([]byte(schema)), schema)
	}
	laughs := `{"$ref":"#/$defs/a0","$defs":{"z":{}`
	for i := range 20 {
		a := func(n int) string { return "a" + strings.Repeat("0", n+1) }
		laughs += `,"` + a(i) + `":{"allOf":[{"$ref":"#/$defs/` + a(i+1) + `"},{"$ref":"#/$defs/` + a(i+1) + `"}]}`
	}
	for _, schema := range []string{
		`{"$ref":"#"}`, `{"properties":{"a":{"$ref":"#/properties/a"}}}`, `{"allOf":[{"anyOf":[{"oneOf":[{"not":{"$ref":"#"}}]}]}]}`, `{"if":{"$ref":"#"}}`, `{"dependentSchemas":{"a":{"$ref":"#"}}}`,
		`{"$defs":{"a":{"then":{"$ref":"#/$defs/b"}},"b":{"else":{"$ref":"#/$defs/a"}}}}`, `{"items":[{"$ref":"#/items/0"}]}`, laughs + `}}`,
		`{"$ref":"other"}`, `{"$ref":"#name"}`, `{"$dynamicRef":"#"}`, `{"$defs":{"a":{"$id":"b","$ref":"#"}}}`,
	} {
		require.NotEmpty(t, Cycle([]byte(schema)), schema)
	}
}
