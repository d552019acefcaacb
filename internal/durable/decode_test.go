package durable

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Wire §1 rule 3: what is sent to a run is refused with the path of the field.
func TestDecodeRefusesWithThePath(t *testing.T) {
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	for name, c := range map[string]struct{ data, path, says string }{
		"unknown field":         {`{"agnet":"a"}`, "agnet", "is not known here"},
		"unknown nested field":  {`{"input":{"txt":"a"}}`, "input.txt", "is not known here"},
		"unknown in a list":     {`{"input":{"parts":[{"type":"text"},{"kind":"x"}]}}`, "input.parts[1].kind", "is not known here"},
		"null":                  {`{"agent":null}`, "agent", "is null"},
		"blank":                 {`{"agent":" \t"}`, "agent", "is blank"},
		"blank in a map":        {`{"labels":{"a":""}}`, "labels.a", "is blank"},
		"number for a string":   {`{"agent":3}`, "agent", "must be a string, not number"},
		"string for a number":   {`{"limits":{"turns":"x"}}`, "limits.turns", "must be a whole number, not string"},
		"list for an object":    {`{"input":[]}`, "input", "must be an object, not"},
		"object for a string":   {`{"agent":{"a":"b"}}`, "agent", "must be a string, not an object"},
		"no turns":              {`{"limits":{"turns":0}}`, "limits.turns", "is zero; leave it out for the default"},
		"no turns, long":        {`{"limits":{"turns":-0.0e7}}`, "limits.turns", "is zero; leave it out for the default"},
		"no money":              {`{"limits":{"cost_usd":0.00}}`, "limits.cost_usd", "is zero; leave it out for the default"},
		"next to no money":      {`{"limits":{"cost_usd":4e-7}}`, "limits.cost_usd", "rounds to zero; the smallest amount is 0.000001"},
		"next to no debt":       {`{"limits":{"cost_usd":-4e-7}}`, "limits.cost_usd", "rounds to zero; the smallest amount is 0.000001"},
		"no time":               {`{"limits":{"wall_clock":"0h"}}`, "limits.wall_clock", "is zero; leave it out for the default"},
		"no tokens of a judge":  {`{"judge":{"max_output_tokens":0}}`, "judge.max_output_tokens", "is zero; leave it out for the default"},
		"bad duration":          {`{"limits":{"wall_clock":"soon"}}`, "limits.wall_clock", `"soon" is not a duration`},
		"bad money":             {`{"limits":{"cost_usd":"2"}}`, "limits.cost_usd", "is not an amount"},
		"number for a duration": {`{"limits":{"wall_clock":30}}`, "limits.wall_clock", `must be a duration such as "90s", not number`},
		"a fraction of a turn":  {`{"limits":{"turns":1.5}}`, "limits.turns", "must be a whole number, not 1.5"},
		"too deep in our part":  {`{"input":{"parts":` + deep + `}}`, "input.parts[0]", "must be an object"},
		"too deep in theirs":    {`{"meta":` + deep + `}`, "meta" + strings.Repeat("[0]", 32), "nested more than 32"},
		"twice":                 {`{"agent":"a","agent":"b"}`, "agent", "is there twice"},
		"twice, the first bad":  {`{"input":{"text":" "},"input":{}}`, "input", "is there twice"},
		"twice in theirs":       {`{"input":{"data":[0,{"a":1,"\u0061":2}]}}`, "input.data[1].a", "is there twice"},
		"not an object":         {`[]`, "", "must be an object"},
		"not JSON":              {`{`, "", "not JSON"},
		"something behind":      {`{} {}`, "", "behind its JSON object"},
		"a name that is nearly": {`{"Agent":"a"}`, "Agent", "is not known here"},
	} {
		t.Run(name, func(t *testing.T) {
			var s agent.Start
			err := Decode([]byte(c.data), &s, 0)
			var e *agent.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, agent.CodeInvalidInput, e.Code)
			require.Equal(t, c.path, e.Path)
			require.Contains(t, e.Message, c.says)
		})
	}
}

func TestDecodeTakes(t *testing.T) {
	var s agent.Start
	require.NoError(t, Decode(nil, &s, 0), "no payload is an empty object")
	require.NoError(t, Decode([]byte(`{"agent":"a","input":{"data":{"any":[1,null,""]}},"limits":{"turns":3,"cost_usd":0.5,"wall_clock":"90s"},"meta":{"x":{"y":null}}}`), &s, 0))
	require.Equal(t, agent.Dollar/2, s.Limits.CostUSD)
	require.JSONEq(t, `{"any":[1,null,""]}`, string(s.Input.Data))
}

// A zero is refused only where it is a number that leaving it out would not say: not behind a
// pointer, where our own JSON has zeros, and where it is an amount.
func TestZerosThatAreMeant(t *testing.T) {
	require.NoError(t, Decode([]byte(`{"temperature":0,"price":{"input":0,"cache_read":0}}`), &agent.Spec{}, 0))
	require.NoError(t, Decode([]byte(`{"input":{"data":0,"briefing":{"confidence":0,"cost_usd":0,"tree":{"turns":0,"usage":{"input_tokens":0}}}}}`), &agent.Start{}, 0))
	require.NoError(t, DecodeOwnAt(1, []byte(`{"limits":{"turns":0}}`), &agent.Start{}, agent.MaxPayload))
	err := Decode([]byte(`{"recovery":{"loop":{"do":"correct","times":0}}}`), &agent.Spec{}, 0)
	require.ErrorContains(t, err, "recovery.loop.times is zero; leave it out for the default", "an object that decodes itself")
	require.ErrorContains(t, Decode([]byte(`{"price":{"input":1e-9}}`), &agent.Spec{}, 0), "price.input rounds to zero")
	require.ErrorContains(t, Decode([]byte(`{"agent":0}`), &agent.Start{}, 0), "agent must be a string")
	require.EqualError(t, Decode([]byte(`{"by":7}`), &agent.CancelCommand{}, 0), "by must be a string, not number", "no name of a Go type")
}

func TestDecodeBoundsTheSize(t *testing.T) {
	var s agent.Start
	err := Decode([]byte(`{"agent":"`+strings.Repeat("a", 64<<10)+`"}`), &s, 0)
	require.ErrorIs(t, err, agent.CodeTooLarge)
}

// The sender chose names and values, and a refusal is recorded: it has the beginning of them.
func TestARefusalIsBounded(t *testing.T) {
	long := strings.Repeat("9", 60_000)
	for _, data := range []string{
		`{"` + long + `":1}`, `{"limits":{"turns":` + long + `}}`, `{"limits":{"turns":1.` + long + `}}`, `{"limits":{"wall_clock":` + long + `}}`,
		`{"limits":{"wall_clock":"` + long + `"}}`, `{"limits":{"cost_usd":"` + long + `"}}`,
	} {
		var s agent.Start
		err := Decode([]byte(data), &s, 0)
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		require.Less(t, len(err.Error()), 2*maxShown+100, data[:40])
	}
}
