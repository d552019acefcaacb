package handoff

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Whatever a model says of its work, the handoff fits its schema and its bounds, has
// all that the runtime knows, and its page has no headings but its own.
func FuzzSaid(f *testing.F) {
	for _, said := range []string{
		goodAnswer, "", "Done.", "```json\n" + goodAnswer + "\n```", `{"summary":" ","done":[{}]}`, `{"summary":"x","confidence":1e400,"done":"y","evidence":[{"kind":"book"}]}`,
		`{"summary":"x\u0000\ud800","decisions":["# a\n# b","# a # b"],"open_questions":[null,"",3],"evidence":{"kind":"url","ref":"r"}}`, `{"summary":"x","summary":"y","Done":[1]}`,
		`{"summary":"` + strings.Repeat("é", maxSummary) + `","failed":[` + strings.Repeat(`{"what":"w"},`, 300) + `{"what":"v"}]}`,
	} {
		f.Add(said)
	}
	schema := resolved(f, Schema())
	f.Fuzz(func(t *testing.T, said string) {
		known := skeleton()
		known.Children = children()
		h := Complete(known, said)
		require.LessOrEqual(t, len(h.Summary), maxSummary)
		require.Equal(t, known.Children, h.Children)
		require.Equal(t, known.UnknownEffects, h.UnknownEffects)
		for i, lists := range [][2][]agent.WorkItem{{known.Done, h.Done}, {known.InFlight, h.InFlight}, {known.NotStarted, h.NotStarted}, {known.Failed, h.Failed}} {
			require.LessOrEqual(t, len(lists[1]), maxEntries)
			for j, item := range lists[0] {
				require.Equal(t, item.What, lists[1][j].What, "list %d", i)
			}
			for _, item := range lists[1] {
				require.NotEmpty(t, strings.TrimSpace(item.What))
				require.LessOrEqual(t, max(len(item.What), len(item.Ref)), maxText)
			}
		}
		h = Truncate(h)
		require.LessOrEqual(t, size(h), maxHandoff)
		raw := jsonOf(t, h)
		var value any
		require.NoError(t, json.Unmarshal(raw, &value))
		require.NoError(t, schema.Validate(value))
		headings := 0
		for line := range strings.Lines(Markdown(h)) {
			if strings.HasPrefix(line, "#") {
				headings++
			}
		}
		require.Equal(t, len(slices.Collect(h.All())), headings)
	})
}
