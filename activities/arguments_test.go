package activities

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Arguments that do not fit the tool's schema are told apart before any rule is asked, in
// words that a model can mend them by.
func TestArgumentsAreHeldToTheToolsSchema(t *testing.T) {
	closed := `{"type":"object","properties":{"amount_eur":{"type":"number"},"iban":{"type":"string"}},"required":["amount_eur"],"additionalProperties":false}`
	open := `{"type":"object","properties":{"amount_eur":{"type":"number"}}}`
	for _, c := range []struct{ schema, arguments, says string }{
		{closed, `{"amount_eur":5}`, ""},
		{closed, `{"amount_eur":5,"note":1}`, `The arguments are: amount_eur, iban`},
		{closed, `{"Amount_EUR":5,"amount_eur":1}`, `there is no argument "Amount_EUR"; amount_eur is meant`},
		{closed, `{"amount_eur":"5"}`, `type: 5 has type "string", want "number"`},
		{closed, `{}`, `missing properties`},
		{closed, ``, `missing properties`},
		{closed, `[]`, "not a JSON object"},
		{closed, `null`, "not a JSON object"},
		{closed, `{"amount_eur":1e400}`, "1e400"},
		{open, `{"amount_eur":5,"note":1}`, ""},
		{open, `{"Amount_EUR":5}`, "amount_eur is meant"},
		{open, `{"amountEur":5}`, "amount_eur is meant"},
		{open, `{"amount_eur ":5}`, "amount_eur is meant"},
		{open, `{"amount_eur\u0000":5}`, "amount_eur is meant"},
		{open, `{"_":5}`, ""},
		{strings.Replace(open, `}}}`, `}},"additionalProperties":true}`, 1), `{"Amount_EUR":5}`, ""},
		{`{"type":17}`, `{"Amount_EUR":5}`, ""}, // its rules judge nothing, see below
		{``, `{"a":5}`, ""},
	} {
		spec := &agent.Spec{Toolset: []agent.ToolSpec{{Name: "pay", Input: json.RawMessage(c.schema)}, {Name: "other"}}}
		call := func(tool string) agent.Part {
			return agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: tool, Arguments: json.RawMessage(c.arguments)}}
		}
		told := faults(spec, []agent.Part{{Type: agent.PartText}, call("other"), call("pay")})
		if c.says == "" {
			require.Nil(t, told, c.arguments)
			continue
		}
		require.Len(t, told, 2)
		require.Empty(t, told[0])
		require.Contains(t, told[1], c.says, c.arguments)
		require.Contains(t, told[1], "do not fit the tool's schema")
		err := deniesEdited(spec, ToolInput{}.of("pay", c.arguments))
		require.ErrorIs(t, err, agent.CodeDenied, "edited ones are held to it too")
	}
}

func (in ToolInput) of(tool, arguments string) ToolInput {
	in.Tool, in.Arguments = tool, json.RawMessage(arguments)
	return in
}

// A rule about the arguments of a tool whose schema can't be read can't judge: it counts if it
// asks or denies.
func TestARuleCantJudgeByASchemaThatCantBeRead(t *testing.T) {
	never := json.RawMessage(`{"required":["x"]}`)
	for schema, counts := range map[string]bool{`{"type":17}`: true, `{"$ref":"#"}`: true, `{"type":"object"}`: false, ``: false} {
		spec := &agent.Spec{Toolset: []agent.ToolSpec{{Name: "pay", Input: json.RawMessage(schema)}}}
		for do, want := range map[agent.Ruling]bool{agent.RulingAsk: counts, agent.RulingDeny: counts, agent.RulingAllow: false} {
			ok, err := matchesRule(spec, agent.Rule{Do: do, Arguments: never}, "pay", json.RawMessage(`{"a":1}`))
			require.NoError(t, err)
			require.Equal(t, want, ok, "%s %s", do, schema)
		}
	}
}

// Patterns that a server writes to take memory and time are not compiled: a rule about these
// arguments can't judge. Those that people write are.
func TestHeavyPatternsAreNotRead(t *testing.T) {
	heavy := func(pattern string) agent.ToolSpec {
		var all []string
		for i := range 60_000 / (len(pattern) + 20) {
			all = append(all, fmt.Sprintf(`"p%d":{"pattern":%q}`, i, pattern))
		}
		return agent.ToolSpec{Name: "x", Input: json.RawMessage(`{"properties":{` + strings.Join(all, ",") + `}}`)}
	}
	for _, pattern := range []string{`(?i:(?:abcdefghijklmnopqrst?){1000})x`, `(?:\pL?){1000}`, strings.Repeat(`\pL`, 5_000)} {
		require.False(t, hasReadableSchema(heavy(pattern)), pattern)
	}
	require.False(t, hasReadableSchema(agent.ToolSpec{Name: "x", Input: json.RawMessage(`{"patternProperties":{"(?:(?:abcdefghijklmnopqrstuvwxyz){1000}":{},"(?:abcdefghijklmnopqrstuvwxyz){1000}":{}}}`)}))
	for _, pattern := range []string{`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, `^.{1,1000}$`, `^\p{Lu}[\pL' -]{0,99}$`} {
		tool := agent.ToolSpec{Name: "x", Input: json.RawMessage(fmt.Sprintf(`{"properties":{"a":{"pattern":%q}}}`, pattern))}
		require.True(t, hasReadableSchema(tool), pattern)
		require.Contains(t, fault(tool, json.RawMessage(`{"a":""}`)), "does not match")
	}
}

// What is kept of schemas is bounded, however many a server lists.
func TestSchemasThatAreKeptAreBounded(t *testing.T) {
	s := &schemas{}
	for i := range 200 {
		require.NotNil(t, s.of(json.RawMessage(fmt.Sprintf(`{"title":"%d%s"}`, i, strings.Repeat("x", 60_000)))).resolved)
	}
	require.LessOrEqual(t, s.size, maxSchemas)
	require.Less(t, len(s.read), 40)
}

// A schema of references that lead on twice each would be checked forever: a call of its tool
// is refused at once. Schemas of trees are checked.
func TestACheckIsBounded(t *testing.T) {
	var bomb []string
	for i := range 40 {
		bomb = append(bomb, fmt.Sprintf(`"d%d":{"properties":{"a":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}}}`, i, i+1, i+1))
	}
	deep := strings.Repeat(`{"a":`, 40) + `{}` + strings.Repeat(`}`, 40)
	hostile := agent.ToolSpec{Name: "x", Input: json.RawMessage(`{"$ref":"#/$defs/d0","$defs":{` + strings.Join(bomb, ",") + `,"d40":{}}}`)}
	require.Contains(t, fault(hostile, json.RawMessage(deep)), "too many parts to be checked")
	require.Empty(t, fault(hostile, json.RawMessage(`{"a":{"a":1}}`)))

	tree := agent.ToolSpec{Name: "x", Input: json.RawMessage(`{"type":"object","properties":{"left":{"$ref":"#"},"right":{"$ref":"#"},"v":{"type":"integer"}},"additionalProperties":false}`)}
	require.Empty(t, fault(tree, json.RawMessage(`{"left":{"v":1,"right":{"left":{"v":2}}},"right":{"v":3}}`)))
	require.NotEmpty(t, fault(tree, json.RawMessage(`{"left":{"v":1,"right":{"left":{"V":2}}},"right":{"v":3}}`)))

	long := `{"text":"` + strings.Repeat("a", 1<<20) + `"}`
	pattern := func(n int) agent.ToolSpec {
		return agent.ToolSpec{Name: "x", Input: json.RawMessage(`{"properties":{"text":{"pattern":"` + strings.Repeat("(a|b)*", n) + `c"}}}`)}
	}
	require.Contains(t, fault(pattern(1_000), json.RawMessage(long)), "too many parts")
	repeats := agent.ToolSpec{Name: "x", Input: json.RawMessage(`{"properties":{"text":{"pattern":"(?:.?.?.?.?.?.?.?.?){1000}"}}}`)}
	require.Contains(t, fault(repeats, json.RawMessage(long)), "too many parts")
	write := agent.ToolSpec{Name: "x", Input: json.RawMessage(`{"properties":{"path":{"type":"string"},"text":{"type":"string"}},"required":["path"]}`)}
	require.Empty(t, fault(write, json.RawMessage(`{"path":"a",`+long[1:])))
}
