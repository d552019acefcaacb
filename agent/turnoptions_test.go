package agent

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Options that leave a run without an end, or that nobody can mean, are refused with their field; a
// text of a name that the runtime does not have too, with the names that there are (HA-54).
func TestOptionsOfATurnThatCantBeMeant(t *testing.T) {
	schema := []byte(`{"type":"object"}`)
	for path, list := range map[string][]Definition{
		"done_sentinel": {
			{DoneSentinel: " END"}, {DoneSentinel: "a\nb"}, {DoneSentinel: strings.Repeat("x", 65)},
			{DoneSentinel: "END", Completion: CompletionTool}, {DoneSentinel: "END", Output: schema},
		},
		"stop_after":                  {{StopAfter: []string{""}}, {StopAfter: []string{"edit"}, Output: schema}},
		"turn_policy.max_prose_chars": {{TurnPolicy: &TurnPolicy{MaxProseChars: -1}}},
		"turn_policy.require_action":  {{TurnPolicy: &TurnPolicy{RequireAction: true}}},
		"text_calls":                  {{TextCalls: "sometimes"}},
		"tool_narrowing.window_turns": {{ToolNarrowing: &ToolNarrowing{WindowTurns: -1}}},
		"texts.greeting":              {{Texts: map[TextName]string{"greeting": "Hello."}}},
		"texts.repair":                {{Texts: map[TextName]string{TextRepair: " "}}, {Texts: map[TextName]string{TextRepair: strings.Repeat("x", 4<<10+1)}}},
		"texts.nudge":                 {{Nudge: "Go.", Texts: map[TextName]string{TextNudge: "Go on."}}},
	} {
		for _, d := range list {
			d.Name, d.Model = "a", "m"
			err := d.Check()
			require.ErrorIs(t, err, CodeInvalidInput, path)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, path, e.Path)
			if path == "texts.greeting" {
				require.ErrorContains(t, err, "it has loop_contract_text, loop_contract_tool, loop_contract_sentinel, nudge,")
			}
		}
	}
}

// Values stand where their names are, once: a value that looks like a name stays.
func TestTextsHaveValues(t *testing.T) {
	d := Definition{Texts: map[TextName]string{TextMaxProse: "{max} of {chars}, {unknown}"}}
	require.Equal(t, "{chars} of 12, {unknown}", d.Text(TextMaxProse, "chars", "12", "max", "{chars}"))
	names := map[TextName]bool{}
	for _, text := range Texts() {
		require.False(t, names[text.Name], text.Name)
		names[text.Name] = true
		require.LessOrEqual(t, len(text.Words), text.Max, text.Name)
	}
}
