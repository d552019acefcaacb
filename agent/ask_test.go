package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckQuestion(t *testing.T) {
	long := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }
	deep := json.RawMessage(strings.Repeat("[", MaxJSONDepth+1) + strings.Repeat("]", MaxJSONDepth+1))
	sound := ToolQuestion{Text: "?", Context: "c", Choices: []string{"a"}, Schema: long(maxSchema), State: long(maxKept)}
	require.NoError(t, sound.Check())
	for path, faults := range map[string]map[Code][]ToolQuestion{
		"text":    {CodeInvalidInput: {{Text: " "}}, CodeTooLarge: {{Text: strings.Repeat("x", maxQuestion+1)}, {Text: "?", Context: strings.Repeat("x", maxQuestion+1)}, {Text: "?", Schema: long(maxSchema + 1)}}},
		"choices": {CodeInvalidInput: {{Text: "?", Choices: make([]string, maxChoices+1)}, {Text: "?", Choices: []string{" "}}}},
		"schema":  {CodeInvalidInput: {{Text: "?", Schema: json.RawMessage(`{`)}, {Text: "?", Schema: deep}}},
		"state":   {CodeInvalidInput: {{Text: "?", State: json.RawMessage(`{`)}, {Text: "?", State: deep}}, CodeTooLarge: {{Text: "?", State: long(maxKept + 1)}}},
	} {
		for code, all := range faults {
			for _, q := range all {
				err := q.Check()
				require.ErrorIs(t, err, code)
				var e *Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, path, e.Path)
			}
		}
	}
}
