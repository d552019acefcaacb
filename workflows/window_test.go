package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// pages are how many are read, the last of which is beyond the window.
const pages = 3

// narrow is an agent whose model has a small window, and which reads until that is
// too small.
func narrow(t *testing.T, c agent.CompactionPolicy, summary string) *bench {
	t.Helper()
	read := tool.New("read", "", func(_ context.Context, _ *tool.Call, in struct{ Page int }) (string, error) {
		return fmt.Sprintf("page %d: %s", in.Page, strings.Repeat("whale ", 2000)), nil
	}, nil)
	rules := []testsuite.Reply{{Match: "Sum up this conversation", Text: summary}, {Match: fmt.Sprintf(`\Apage %d`, pages), Text: "done"}}
	for i, last := range []string{`\Ago`, `\Apage 1`, `\Apage 2`} {
		rules = append(rules, testsuite.Reply{Match: last, Calls: []testsuite.Call{{Tool: "read", Arguments: map[string]any{"Page": i + 1}}}})
	}
	b := setup(t, agent.Definition{Compaction: c}, testsuite.NewScript(rules...), read)
	small := b.acts.Agents["tester"]
	small.Spec.Window = 10_000
	b.acts.Agents["tester"] = small
	return b
}

// asked are the requests for a summary, and for anything else.
func asked(b *bench) (summaries, others []string) {
	for _, r := range b.script.Requests() {
		text := r.Messages[len(r.Messages)-1].Text()
		if strings.Contains(text, "Sum up this conversation") {
			summaries = append(summaries, text)
			continue
		}
		var whole strings.Builder
		for _, m := range r.Messages {
			whole.WriteString(m.Text())
			for _, p := range m.Parts {
				if p.Result != nil {
					whole.WriteString(p.Result.Text)
				}
			}
		}
		others = append(others, whole.String())
	}
	return summaries, others
}

// What an agent says about its summaries is said to the model that writes them,
// and to nobody else (HA-83).
func TestASummaryIsAskedForWithTheAgentsOwnWords(t *testing.T) {
	b := narrow(t, agent.CompactionPolicy{Instructions: "Keep every name.", KeepLast: 2}, "Ahab hunts a whale.")
	require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
	summaries, others := asked(b)
	require.NotEmpty(t, summaries)
	for _, s := range summaries {
		require.True(t, strings.HasSuffix(s, "Keep every name."), "%.500s", s)
	}
	require.True(t, strings.Contains(others[len(others)-1], "Ahab hunts a whale."), "the summary is what the model sees")
	without := 0
	for _, req := range b.script.Requests() {
		require.Len(t, req.Tools, 1, "a request without the tools of those before it misses the provider's cache")
		if req.NoCalls {
			without++
		}
	}
	require.Equal(t, len(summaries), without, "only a summary may call no tools")
	for _, o := range others {
		require.False(t, strings.Contains(o, "Keep every name."), "%.500s", o)
	}
}

// A summary that is too long for its share of the window is cut, and says so (HA-146).
func TestASummaryThatIsTooLongIsCut(t *testing.T) {
	b := narrow(t, agent.CompactionPolicy{KeepLast: 2}, "Ahab hunts. "+strings.Repeat("whale ", 20_000))
	require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
	_, others := asked(b)
	last := others[len(others)-1]
	require.True(t, strings.Contains(last, "Ahab hunts."), "its beginning stays")
	require.True(t, strings.Contains(last, "[cut here: "), "and it says that it was cut")
	require.Less(t, len(last), 40_000, "the request fits into the window")
}

// Where compaction is switched off a conversation is sent as it is, however long,
// and what the provider says of it stands (HA-147).
func TestCompactionCanBeSwitchedOff(t *testing.T) {
	b := narrow(t, agent.CompactionPolicy{Strategy: agent.CompactionNone}, "never")
	require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
	summaries, others := asked(b)
	require.Empty(t, summaries)
	require.Equal(t, pages, strings.Count(others[pages], strings.Repeat("whale ", 2000)), "every word is there")

	b = setup(t, agent.Definition{Compaction: agent.CompactionPolicy{Strategy: agent.CompactionNone}},
		testsuite.NewScript(testsuite.Reply{Text: "never", Fail: []testsuite.Failure{{Kind: agent.FaultContext, HTTP: 400, Message: "too long"}}}))
	o := b.run(t, "go")
	require.Equal(t, agent.CodeProviderError, o.Error.Code)
	require.Equal(t, agent.FaultContext, o.Error.Provider.Kind)
	require.Len(t, b.script.Requests(), 1)
}
