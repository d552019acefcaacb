package loop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The note after a suspension names what ended it and what came with that, whoever or whatever it was
// (HL-34).
func TestTheNoteNamesItsInput(t *testing.T) {
	park := func(conditions string) string {
		return `calls await_resumption {"reason":"not paid","conditions":` + conditions + `}`
	}
	opened := `opened {"tools":["await_resumption"],"toolset":[{"name":"await_resumption","executor":"runtime"}]}`
	event := `{"event":{"topic":"paid"}}`
	for ends, c := range map[string]struct{ conditions, note string }{
		`emit {"topic":"paid","payload":{"order":7}}`: {event, `The event paid came. The input: "{\"order\":7}"`},
		`resume {"message":"look  again"}`:            {event, `Somebody resumed you. The input: "look again"`},
		`resume {}`:                                   {event, "Somebody resumed you."},
		"after 1h":                                    {`{"after":"1h","on_timeout":"resume_with_input","input":"look once more"}`, `The input: "look once more"`},
	} {
		lines := []string{"begin go", opened, park(c.conditions), "sealed", ends}
		if ends == "after 1h" {
			lines = append(lines, "timer")
		}
		require.Regexp(t, "^You were suspended at turn 1 for the reason \"not paid\" and continue at .*", played(t, lines...).state.Turn.Note, ends)
		require.Contains(t, played(t, lines...).state.Turn.Note, c.note, ends)
	}
}
