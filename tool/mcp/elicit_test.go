package mcp

import (
	"encoding/json"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func asked(t *testing.T, schema string) want {
	t.Helper()
	w, err := New("tickets", []string{"x"}, nil).wantOf("a", &sdk.ElicitParams{Message: "Do it?", RequestedSchema: json.RawMessage(schema)})
	require.NoError(t, err)
	return w
}

// told is what the server reads of an answer.
func told(t *testing.T, w want, answer string) string {
	t.Helper()
	result, wrong := w.answered(agent.ToolAnswer{Data: json.RawMessage(answer)})
	require.Empty(t, wrong)
	raw, err := json.Marshal(result.Content)
	require.NoError(t, err)
	return string(raw)
}

// Nobody consents to what they did not answer, and what a server would take for an
// answer is said.
func TestDefaultsAreToldAndNotFilledIn(t *testing.T) {
	w := asked(t, `{"type":"object","properties":{"name":{"type":"string"},"wipe":{"type":"boolean","default":true}}}`)
	require.Equal(t, `{"name":"x"}`, told(t, w, `{"name":"x"}`))
	require.Contains(t, w.question("tickets", "").Context, "\n- name: string, may be left out\n- wipe: boolean, may be left out, by default true")
}

func TestChoicesAreToldByTheirTitles(t *testing.T) {
	w := asked(t, `{"type":"object","required":["a","b","c","d","e"],"properties":{
		"a":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]},
		"b":{"type":"string","enum":["r","g"],"enumNames":["Red"]},
		"c":{"type":"array","items":{"type":"string","enum":["r","g"]}},
		"d":{"type":"array","items":{"anyOf":[{"const":"r","title":"Red"}]},"title":"Colours"},
		"e":{"type":"integer","enum":[1,2]}}}`)
	require.Equal(t, "\n- a: string, one of r (Red), g (Green)\n- b: string, one of r (Red), g\n- c: array, some of r, g\n- d: array, some of r (Red) (Colours)\n- e: integer, one of 1, 2", fields(w.Schema))
}

// A number reaches the server as it was written, however large.
func TestLargeNumbersAreKept(t *testing.T) {
	const large = "9007199254740993"
	one := asked(t, `{"type":"object","properties":{"n":{"type":"integer"}}}`)
	require.Equal(t, `{"n":`+large+`}`, told(t, one, `{"n":`+large+`}`))
	require.Equal(t, `{"n":`+large+`}`, told(t, one, large))
	_, wrong := one.answered(agent.ToolAnswer{Text: `{"n":1.5}`})
	require.NotEmpty(t, wrong)
	_, wrong = one.answered(agent.ToolAnswer{Text: `{"n":1}}`})
	require.NotEmpty(t, wrong)
}

// People see whose page it is that they open.
func TestPagesAreToldByTheirHost(t *testing.T) {
	s := New("tickets", []string{"x"}, nil)
	w, err := s.wantOf("a", &sdk.ElicitParams{Message: "Sign in.", URL: "https://bank.example.com.evil.example:8443/in#bank.example.com"})
	require.NoError(t, err)
	require.Contains(t, w.question("tickets", "").Text, "\nIts host is bank.example.com.evil.example:8443")
	for _, page := range []string{"https://bank.example.com@evil.example/in", "https://a:b@evil.example/", "https://@evil.example/"} {
		_, err = s.wantOf("a", &sdk.ElicitParams{Message: "Sign in.", URL: page})
		require.EqualError(t, err, "it asks to open a page whose URL has a user in it, which people take for the host", page)
	}
	for _, page := range []string{"https://b\u0430nk.example/", "https://bank.example\u202emoc.live/"} {
		_, err := s.wantOf("", &sdk.ElicitParams{Mode: "url", URL: page})
		require.ErrorContains(t, err, "is not written in ASCII", page)
	}
}

// A form whose patterns take memory and time is not shown to anybody.
func TestFormsWithHeavyPatternsAreRefused(t *testing.T) {
	for pattern, says := range map[string]string{"(?:abcdefghijklmnopqrstuvwxyz){1000}": "too long, or repeat too much", "^[a-z]{1,8}$": ""} {
		schema := `{"type":"object","properties":{"a":{"type":"string","pattern":"` + pattern + `"}}}`
		_, err := New("tickets", []string{"x"}, nil).wantOf("a", &sdk.ElicitParams{Message: "Do it?", RequestedSchema: json.RawMessage(schema)})
		if says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, says)
	}
}
