package partial

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

// values writes a text character by character, and returns the values that differ.
func values(schema, text string) (list []string, p *Parser) {
	p = NewParser(nil)
	if schema != "" {
		p = NewParser(NewSchema(json.RawMessage(schema)))
	}
	for i := range len(text) {
		p.Write(text[i : i+1])
		if v := string(p.Value(false)); v != "" && (len(list) == 0 || list[len(list)-1] != v) {
			list = append(list, v)
		}
	}
	if p.End(); p.Size() > 0 && (len(list) == 0 || list[len(list)-1] != string(p.Value(false))) {
		list = append(list, string(p.Value(false)))
	}
	return list, p
}

func TestValues(t *testing.T) {
	for text, want := range map[string][]string{
		`{"a":"xy","b":[1,tr`:      {`{}`, `{"a":""}`, `{"a":"x"}`, `{"a":"xy"}`, `{"a":"xy","b":[]}`, `{"a":"xy","b":[1]}`},
		`[12, true ,null]`:         {`[]`, `[12]`, `[12, true]`, `[12, true ,null]`},
		`[-1.5e+3,`:                {`[]`, `[-1.5e+3]`},
		`42`:                       {`42`},
		`"é\n\ud83d\ude00"`:        {`""`, `"é"`, `"é\n"`, `"é\n\ud83d\ude00"`},
		`"\ud83dx`:                 {`""`, `"\ud83dx"`},
		"```json\n{\"a\":1}\n```":  {`{}`, `{"a":1}`},
		"  {\"a\" : {} , \"b\":1}": {`{}`, `{"a" : {}}`, `{"a" : {} , "b":1}`},
	} {
		got, p := values("", text)
		require.Equal(t, want, got, text)
		require.True(t, p.Fits(), text)
	}
}

// What is no JSON ends it, and what came before stays.
func TestNoJSON(t *testing.T) {
	for text, want := range map[string]string{
		`Here it is: {"a":1}`: "", "``{}": "", `{"a":1,}`: `{"a":1}`, `[1,]`: `[1]`, `[1}`: `[1]`, `{1`: `{}`, `{"a" 1`: `{}`, `[truth]`: `[]`, `[01]`: `[]`, `["\x`: `[""]`,
		"[\"a\nb": `["a"]`, `{"a":1,"a":2}`: `{"a":1}`, `{"a":1,"\u0061":2}`: `{"a":1}`, `["\u12g4`: `[""]`, `]`: "",
		strings.Repeat("[", 200): strings.Repeat("[", 128) + strings.Repeat("]", 128),
	} {
		p := NewParser(nil)
		p.Write(text)
		require.Equal(t, want, string(p.Value(false)), text)
		require.False(t, p.Fits(), text)
		require.False(t, p.End(), text)
	}
	p := NewParser(nil)
	p.Write(`["` + strings.Repeat("x", maxText))
	require.False(t, p.Fits(), "it is longer than any reply")
}

func TestSettled(t *testing.T) {
	p := NewParser(nil)
	p.Write(`{"a":"x","b":["y","z`)
	require.Equal(t, `{"a":"x","b":["y","z"]}`, string(p.Value(false)))
	require.Equal(t, `{"a":"x","b":["y"]}`, string(p.Value(true)))
}

const order = `{"type":"object","additionalProperties":false,"required":["state","lines"],"properties":{
	"state":{"enum":["open","shut"]},"when":{"type":"string","format":"date-time"},"note":{"type":["null","string"]},
	"lines":{"type":"array","minItems":2,"items":{"$ref":"#/$defs/line"}},
	"pair":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}},
	"$defs":{"line":{"type":"object","required":["id"],"properties":{"id":{"type":"integer","minimum":1},"by":{"anyOf":[{"type":"object","properties":{"name":{"type":"string","minLength":2}},"additionalProperties":false},{"type":"null"},{"const":"nobody"}]}},
		"patternProperties":{"^x-":{"type":"boolean"}},"additionalProperties":{"type":"number"}}}}`

// What fits the schema so far comes, and no more.
func TestFitsSoFar(t *testing.T) {
	for text, want := range map[string]string{
		`{"state":"op`:                                   `{}`,
		`{"state":"open"`:                                `{"state":"open"}`,
		`{"state":"ajar"`:                                `{} no`,
		`{"when":"2026-11-26T1`:                          `{}`,
		`{"note":"so`:                                    `{"note":"so"}`,
		`{"note":null,`:                                  `{"note":null}`,
		`{"note":4`:                                      `{} no`,
		`{"other":1`:                                     `{} no`,
		`["state"`:                                       ` no`,
		`{"lines":[{"id":12}`:                            `{"lines":[{"id":12}]}`,
		`{"lines":[{"id":1`:                              `{"lines":[{}]}`,
		`{"lines":[{"id":0}`:                             `{"lines":[{}]} no`,
		`{"lines":[{"id":1.5}`:                           `{"lines":[{}]} no`,
		`{"lines":[{"by":{"name":"A`:                     `{"lines":[{"by":{"name":"A"}}]}`,
		`{"lines":[{"by":{"name":"A"`:                    `{"lines":[{"by":{"name":"A"}}]} no`,
		`{"lines":[{"by":{"age":`:                        `{"lines":[{"by":{}}]}`,
		`{"lines":[{"by":{"age":1`:                       `{"lines":[{"by":{}}]} no`,
		`{"lines":[{"by":"nobod`:                         `{"lines":[{}]}`,
		`{"lines":[{"by":"nobody"`:                       `{"lines":[{"by":"nobody"}]}`,
		`{"lines":[{"x-a":true,"weight":2.5,`:            `{"lines":[{"x-a":true,"weight":2.5}]}`,
		`{"lines":[{"x-a":1`:                             `{"lines":[{}]} no`,
		`{"lines":[{"weight":true`:                       `{"lines":[{}]} no`,
		`{"pair":["a",1]`:                                `{"pair":["a",1]}`,
		`{"pair":["a","b`:                                `{"pair":["a"]} no`,
		`{"pair":["a",1,2`:                               `{"pair":["a",1]} no`,
		`{"lines":[{"id":1},{"id":2,"by":null},{"id":"3`: `{"lines":[{"id":1},{"id":2,"by":null},{}]} no`,
		`{"lines":[{"id":1}],"state":"shut","pair":["a",1],"x`: `{"lines":[{"id":1}],"state":"shut","pair":["a",1]}`,
	} {
		p := NewParser(NewSchema(json.RawMessage(order)))
		p.Write(text)
		got := string(p.Value(false))
		if !p.Fits() {
			got += " no"
		}
		require.Equal(t, want, got, text)
	}
}

// A schema that leads back to itself, or has more alternatives than anybody writes, ends.
func TestHostileSchemas(t *testing.T) {
	wide := `{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 500) + `{"type":"string"}]}`
	deep := strings.Repeat(`{"allOf":[{"$ref":"#"},`, 20) + `true` + strings.Repeat(`]}`, 20)
	for _, schema := range []string{`{"$ref":"#"}`, `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`, wide, deep, `{"$ref":"#/nowhere"}`, `{"$ref":"http://x"}`, `3`, `{`, `{"enum":3,"type":7,"pattern":"("}`} {
		_, p := values(schema, `"a"`)
		require.True(t, p.End(), schema)
	}
	_, p := values(`false`, `"a"`)
	require.False(t, p.Fits())
	tree := `{"type":"object","properties":{"below":{"type":"array","items":{"$ref":"#"}}},"additionalProperties":false}`
	text := strings.Repeat(`{"below":[`, 40) + strings.Repeat(`]}`, 40)
	_, p = values(tree, text)
	require.True(t, p.End())
}

// The work of a piece does not grow with what came before: 4 times the text is about 4 times
// the work. It counts allocations, which don't depend on the machine.
func TestWorkIsLinear(t *testing.T) {
	work := func(items int) float64 {
		text := `{"lines":[` + strings.Repeat(`{"id":1,"by":{"name":"Ada"}},`, items)
		return testing.AllocsPerRun(1, func() {
			p := NewParser(NewSchema(json.RawMessage(order)))
			for piece := range slices.Chunk([]byte(text), 10) {
				p.Write(string(piece))
			}
			require.True(t, p.Fits())
		})
	}
	require.Less(t, work(4000), 5*work(1000))
}

func BenchmarkParser(b *testing.B) {
	text := `{"lines":[` + strings.Repeat(`{"id":1,"by":{"name":"Ada"}},`, 3500)
	b.SetBytes(int64(len(text)))
	schema := NewSchema(json.RawMessage(order))
	for b.Loop() {
		p := NewParser(schema)
		for i := 0; i < len(text); i += 10 {
			p.Write(text[i:min(i+10, len(text))])
		}
	}
}

// FuzzParser checks, for any text that comes in any pieces: each value is JSON, each extends
// the one before it, and the last is the whole. What fits the schema is never refused.
func FuzzParser(f *testing.F) {
	schemas := []string{order, `true`, `{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"object","additionalProperties":{"type":"integer"}}]}`}
	for _, text := range []string{`{"state":"open","lines":[{"id":1},{"id":2,"by":{"name":"Ada"}}],"note":"\u00e9\ud83d\ude00"}`, `["a","\\",1.5e3,null]`, "```\n{\"a\":1}\n```", `{"a":1,"b":-0}`, "\"\xe2\x82\"", ` 12 `} {
		for i := range schemas {
			f.Add(uint8(i), text, uint64(1))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, text string, seed uint64) {
		schema := schemas[int(which)%len(schemas)]
		p, dice := NewParser(NewSchema(json.RawMessage(schema))), rand.New(rand.NewPCG(seed, 0))
		var last, now any
		check := func() {
			raw := p.Value(false)
			if raw == nil {
				return
			}
			require.NoError(t, json.Unmarshal(raw, &now), "%s", raw)
			require.True(t, last == nil || extends(last, now), "%v, then %v", last, now)
			require.True(t, json.Valid(p.Value(true)) || p.Value(true) == nil, "%s", p.Value(true))
			last, now = now, nil
		}
		for rest := text; rest != ""; {
			n := 1 + dice.IntN(min(len(rest), 8))
			p.Write(rest[:n])
			rest = rest[n:]
			check()
		}
		complete := p.End()
		check()
		var whole any
		if json.Unmarshal([]byte(text), &whole) != nil {
			return
		}
		if complete {
			require.Equal(t, whole, last)
		}
		if twice(text) || strings.Count(text, "[")+strings.Count(text, "{") > 128 {
			return
		}
		var s jsonschema.Schema
		require.NoError(t, json.Unmarshal([]byte(schema), &s))
		resolved, err := s.Resolve(nil)
		require.NoError(t, err)
		if resolved.Validate(whole) == nil {
			require.True(t, complete, "it fits: %s", text)
		}
	})
}

// extends reports whether a value continues another.
func extends(was, is any) bool {
	switch was := was.(type) {
	case string:
		is, ok := is.(string)
		return ok && strings.HasPrefix(is, was)
	case []any:
		is, ok := is.([]any)
		if !ok || len(is) < len(was) {
			return false
		}
		for i := range was {
			if !extends(was[i], is[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		is, ok := is.(map[string]any)
		for name := range was {
			ok = ok && is[name] != nil == (was[name] != nil) && extends(was[name], is[name])
		}
		return ok
	}
	return was == is
}

// twice reports whether a name comes twice in an object.
func twice(text string) bool {
	d := json.NewDecoder(strings.NewReader(text))
	var walk func() bool
	walk = func() bool {
		tok, err := d.Token()
		if err != nil {
			return false
		}
		switch tok {
		case json.Delim('['):
			for d.More() {
				if walk() {
					return true
				}
			}
			_, _ = d.Token()
		case json.Delim('{'):
			names := map[string]bool{}
			for d.More() {
				name, _ := d.Token()
				if names[name.(string)] || walk() {
					return true
				}
				names[name.(string)] = true
			}
			_, _ = d.Token()
		}
		return false
	}
	return walk()
}
