package durable

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Whatever comes from outside is refused, or is within the bounds; and what is
// taken means the same when it was written and read again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"agent":"a","input":{"text":"x"}}`, `{"limits":{"cost_usd":1e300}}`, `{"meta":[[[[]]]]}`, "\xff", `{"labels":{"a":"b"}}`, `{} {}`,
		`{"meta":` + string(bytes.Repeat([]byte("["), 32)) + string(bytes.Repeat([]byte("]"), 32)) + `}`, `{"limits":{"wall_clock":"90s","turns":3}}`,
		`{"input":{"text":" "},"input":{}}`, `{"input":{"data":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `},"input":{}}`, `{"carry":null,"c\u0061rry":"reset"}`,
		`{"v":1,"agent":"a","input":{"parts":[{"type":"text","text":"x"}],"briefing":{"summary":"s"},"data":{"a":[null,""]}},"park":{"at":"2026-11-21T08:00:00Z","any":[{"event":{"topic":"t"}}]},"from":{"run":"r"}}`,
	} {
		f.Add([]byte(seed), uint16(0))
	}
	f.Add([]byte(`{"agent":"a"}`), uint16(5))
	f.Fuzz(func(t *testing.T, data []byte, most uint16) {
		var s agent.Start
		if err := Decode(data, &s, int(most)); err != nil {
			require.Contains(t, []agent.Code{agent.CodeInvalidInput, agent.CodeTooLarge}, agent.CodeOf(err), "%v", err)
			return
		}
		bound := int(most)
		if bound == 0 {
			bound = 64 << 10
		}
		require.LessOrEqual(t, len(data), bound)
		require.LessOrEqual(t, deepest(data), agent.MaxJSONDepth+1)
		raw, err := json.Marshal(s)
		require.NoError(t, err)
		var again agent.Start
		if err = Decode(raw, &again, 0); err != nil {
			// Some characters are written as six, and what has to be there as a blank.
			require.True(t, agent.CodeOf(err) == agent.CodeTooLarge || strings.Contains(err.Error(), "is blank"), "%s: %v", raw, err)
			return
		}
		twice, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(raw), string(twice))
	})
}

// deepest is how many lists and objects stand in one another.
func deepest(data []byte) (most int) {
	depth := 0
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		token, err := d.Token()
		if err != nil {
			return most
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		most = max(most, depth)
	}
}
