package match

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"encoding/json"
)

// Each row is a schema, a value, and whether it fits; read by a library as well, so that
// what we take means what JSON Schema says.
func TestFits(t *testing.T) {
	raw, err := os.ReadFile("testdata/fits.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, " | ")
		require.Len(t, f, 3, line)
		t.Run(line, func(t *testing.T) {
			s, err := Read([]byte(f[0]))
			require.NoError(t, err)
			fits, err := s.FitsJSON([]byte(f[1]))
			require.NoError(t, err)
			require.Equal(t, f[2] == "yes", fits)
			require.Equal(t, fits, byLibrary(t, f[0], f[1]), "JSON Schema means something else")
		})
	}
}

func byLibrary(t require.TestingT, schema, value string) bool {
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal([]byte(schema), &s))
	resolved, err := s.Resolve(nil)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal([]byte(value), &v))
	return resolved.Validate(v) == nil
}

// What is not taken is refused, with the place.
func TestRefused(t *testing.T) {
	for schema, says := range map[string]string{
		`{"$ref":"#"}`:                   "/$ref is not taken here: write out what it stands for",
		`{"properties":{"a":{"if":{}}}}`: "/properties/a/if is not taken here",
		`{"type":"strin"}`:               `/type knows no type "strin"`,
		`{"enum":[]}`:                    "/enum must be a list of values",
		`{"anyOf":[{"minLength":-1}]}`:   "/anyOf/0/minLength must be a number from 0",
		`{"items":{"pattern":"^a"}}`:     "/items/pattern is not taken here: write enum or const",
		`{"minimum":1e999999999}`:        "too many digits",
		`[]`:                             "the schema must be an object, true or false",
		`{} {}`:                          "something stands behind the value",
		strings.Repeat(`{"not":`, 40):    "is no JSON",
		`{"description":"` + strings.Repeat("x", maxSchema) + `"}`: "at most",
	} {
		_, err := Read([]byte(schema))
		require.ErrorContains(t, err, says, "%.60s", schema)
	}
}

// A match is bounded by what it looks at, and not by the clock.
func TestBounded(t *testing.T) {
	alike := strings.Repeat(`{"type":["string","number"]},`, 200)
	s, err := Read([]byte(`{"items":{"not":{"anyOf":[` + strings.TrimSuffix(alike, ",") + `]}}}`))
	require.NoError(t, err)
	fits, err := s.FitsJSON([]byte("[" + strings.TrimSuffix(strings.Repeat("true,", 10_000), ",") + "]"))
	require.ErrorIs(t, err, ErrTooLarge)
	require.False(t, fits)
	_, err = s.FitsJSON([]byte(strings.Repeat("[", 100) + strings.Repeat("]", 100)))
	require.ErrorContains(t, err, "deep")
	_, err = s.FitsJSON([]byte("1e999999999"))
	require.ErrorContains(t, err, "digits")
}

// What one look costs counts by its size: long texts and numbers, names, lists of values.
func TestSizesCount(t *testing.T) {
	times := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	long := `"` + strings.Repeat("a", 60_000) + `"`
	var names []string
	for i := range 8_000 {
		names = append(names, fmt.Sprintf(`"n%d":1`, i))
	}
	for what, c := range map[string][2]string{
		"a long text":  {`{"allOf":[` + times(200, `{"maxLength":1000000000}`) + `]}`, long},
		"long numbers": {`{"items":{"allOf":[` + times(400, `{"type":"integer"}`) + `]}}`, `[` + times(100, strings.Repeat("1", 400)) + `]`},
		"digits":       {`{"items":{"not":{"enum":[` + times(9, "1e100") + `]}}}`, `[` + times(1000, "1e399") + `]`},
		"names":        {`{"allOf":[` + times(300, `{"properties":{}}`) + `]}`, `{` + strings.Join(names, ",") + `}`},
		"values":       {`{"items":{"not":{"enum":[` + times(3000, "1") + `]}}}`, `[` + times(1000, `"x"`) + `]`},
		"required":     {`{"items":{"required":[` + times(1900, `"a"`) + `]}}`, `[` + times(1000, `{"a":1}`) + `]`},
	} {
		s, err := Read([]byte(c[0]))
		require.NoError(t, err, what)
		_, err = s.FitsJSON([]byte(c[1]))
		require.ErrorIs(t, err, ErrTooLarge, what)
	}
}

// Drawn schemas and values come out as the library has them.
func TestAsTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema, value := drawSchema(t, 3), drawValue(t, 3)
		s, err := Read([]byte(schema))
		require.NoError(t, err, schema)
		fits, err := s.FitsJSON([]byte(value))
		require.NoError(t, err)
		require.Equal(t, byLibrary(t, schema, value), fits, "%s against %s", schema, value)
	})
}

func drawSchema(t *rapid.T, depth int) string {
	leaf := []string{
		`true`, `false`, `{}`, `{"type":"string"}`, `{"type":["integer","null"]}`, `{"enum":[1,"a",{"a":1}]}`, `{"const":[1]}`,
		`{"minimum":1,"exclusiveMaximum":3}`, `{"minLength":2}`, `{"required":["a"]}`, `{"maxItems":1}`, `{"type":"object","minProperties":1}`,
	}
	if depth == 0 {
		return rapid.SampledFrom(leaf).Draw(t, "leaf")
	}
	one := func() string { return drawSchema(t, depth-1) }
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		return fmt.Sprintf(`{"properties":{"a":%s},"additionalProperties":%s}`, one(), one())
	case 1:
		return fmt.Sprintf(`{"items":%s}`, one())
	case 2:
		return fmt.Sprintf(`{"allOf":[%s,%s]}`, one(), one())
	case 3:
		return fmt.Sprintf(`{"anyOf":[%s,%s]}`, one(), one())
	case 4:
		return fmt.Sprintf(`{"oneOf":[%s,%s]}`, one(), one())
	case 5:
		return fmt.Sprintf(`{"not":%s}`, one())
	}
	return rapid.SampledFrom(leaf).Draw(t, "leaf")
}

func drawValue(t *rapid.T, depth int) string {
	leaf := []string{`null`, `true`, `1`, `1.0`, `2.5`, `"a"`, `"ab"`, `"b"`, `[]`, `{}`, `3`}
	if depth == 0 {
		return rapid.SampledFrom(leaf).Draw(t, "leaf")
	}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return fmt.Sprintf(`[%s,%s]`, drawValue(t, depth-1), drawValue(t, depth-1))
	case 1:
		return fmt.Sprintf(`{"a":%s,"b":%s}`, drawValue(t, depth-1), drawValue(t, depth-1))
	}
	return rapid.SampledFrom(leaf).Draw(t, "leaf")
}
