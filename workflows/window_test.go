package workflows_test

import (
	"context"
	"errors"
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
	return narrowWith(t, c, testsuite.Reply{Text: summary})
}

func narrowWith(t *testing.T, c agent.CompactionPolicy, summary testsuite.Reply) *bench {
	t.Helper()
	summary.Match = "Sum up this conversation"
	read := tool.New("read", "", func(_ context.Context, _ *tool.Call, in struct{ Page int }) (string, error) {
		return fmt.Sprintf("page %d: %s", in.Page, strings.Repeat("whale ", 2000)), nil
	}, nil)
	rules := []testsuite.Reply{summary, {Match: fmt.Sprintf(`\Apage %d`, pages), Text: "done"}}
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

// A refusal replaces no messages: the model learns that the older part is left out. A summary that is cut
// off says more than that, so it stays.
func TestARefusalIsNoSummary(t *testing.T) {
	for finish, want := range map[agent.Finish]string{
		agent.FinishContentFilter: "The older part of the conversation is left out here",
		agent.FinishLength:        "I can't help with that.",
	} {
		t.Run(string(finish), func(t *testing.T) {
			b := narrowWith(t, agent.CompactionPolicy{Strategy: agent.CompactionSummarizeAll}, testsuite.Reply{Text: "I can't help with that.", Finish: string(finish)})
			o := b.run(t, "go")
			require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
			_, others := asked(b)
			last := others[len(others)-1]
			require.True(t, strings.Contains(last, want), "%.500s", last)
			require.Equal(t, finish == agent.FinishLength, strings.Contains(last, "I can't help with that."))
		})
	}
}

// Where compaction is switched off a conversation is sent as it is, however long,
// and what the provider says of it stands (HA-147).
func TestCompactionCanBeSwitchedOff(t *testing.T) {
	b := narrow(t, agent.CompactionPolicy{Strategy: agent.CompactionNone}, "never")
	require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
	require.NotContains(t, b.events(t), agent.EventCompacted)
	summaries, others := asked(b)
	require.Empty(t, summaries)
	require.Equal(t, pages, strings.Count(others[pages], strings.Repeat("whale ", 2000)), "every word is there")

	b = setup(t, agent.Definition{Compaction: agent.CompactionPolicy{Strategy: agent.CompactionNone}},
		testsuite.NewScript(testsuite.Reply{Text: "never", Fail: []testsuite.Failure{{Kind: agent.FaultContext, HTTP: 400, Message: "too long"}}}))
	o := b.run(t, "go")
	require.NotContains(t, b.events(t), agent.EventCompacted)
	require.NotNil(t, o.Error)
	require.Equal(t, agent.CodeProviderError, o.Error.Code)
	require.Equal(t, agent.FaultContext, o.Error.Provider.Kind)
	require.Len(t, b.script.Requests(), 1)
}

// A function of the agent's own writes the summary: it gets what is replaced, the reminders and the
// policy, once. If it fails, the model sums up, and the event says why (HA-145).
func TestACustomCompaction(t *testing.T) {
	for name, fault := range map[string]error{"works": nil, "fails": errors.New("no disk")} {
		t.Run(name, func(t *testing.T) {
			policy := agent.CompactionPolicy{Strategy: agent.CompactionCustom, Tool: "sum_up", KeepLast: 2, Instructions: "Keep every name."}
			b := narrow(t, policy, "The model's summary.")
			var got []agent.CompactionInput
			own := tool.New("sum_up", "", func(_ context.Context, _ *tool.Call, in agent.CompactionInput) (agent.CompactionSummary, error) {
				got = append(got, in)
				return agent.CompactionSummary{Summary: fmt.Sprintf("resume over %d parts", len(in.Archived))}, fault
			}, &tool.Options{ReadOnly: true})
			require.NoError(t, own.Err())
			b.acts.Tools["sum_up"] = own
			a := b.acts.Agents["tester"]
			a.Spec.Reminders = []agent.Reminder{{Text: "Be exact."}}
			b.acts.Agents["tester"] = a
			o := b.run(t, "go")
			require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
			require.Len(t, got, 1)
			require.NotEmpty(t, got[0].Archived)
			require.Equal(t, "go", got[0].Archived[0].Text)
			require.Equal(t, []string{"Be exact."}, got[0].Reminders)
			require.Equal(t, agent.CompactionCustom, got[0].Policy.Strategy)
			head, err := b.acts.Log.Store().Head(t.Context(), o.Session)
			require.NoError(t, err)
			view, err := b.acts.Log.View(t.Context(), head.Digest)
			require.NoError(t, err)
			var said []agent.Event
			for _, e := range view.Events() {
				if e.Type == agent.EventCompacted {
					said = append(said, e)
				}
				require.False(t, e.Call != nil && e.Call.Tool == "sum_up", "it is no call of the model")
			}
			require.Len(t, said, 1)
			summaries, _ := asked(b)
			if fault == nil {
				require.Equal(t, agent.CompactionCustom, said[0].Compaction.Strategy)
				require.Contains(t, said[0].Message.Text(), fmt.Sprintf("resume over %d parts", len(got[0].Archived)))
				require.Empty(t, summaries)
				return
			}
			require.Equal(t, agent.CompactionHybrid, said[0].Compaction.Strategy)
			require.Contains(t, said[0].Compaction.Fallback, "no disk")
			require.Contains(t, said[0].Message.Text(), "The model's summary.")
			require.Len(t, summaries, 1)
		})
	}
}
