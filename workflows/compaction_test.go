package workflows_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/window"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

const (
	readerPages  = 12
	readerWindow = 10_000
	readerLimit  = 9000 // a tenth of the window is for the reply
)

// reader is an agent that reads pages of which its model's window takes about half. The provider refuses
// the request with page refused as too long; zero is none.
func reader(t *testing.T, c agent.CompactionPolicy, refused int) *bench {
	t.Helper()
	read := tool.New("read", "", func(_ context.Context, _ *tool.Call, in struct{ Page int }) (string, error) {
		return fmt.Sprintf("page %d: %s", in.Page, strings.Repeat("whale ", 500)), nil
	}, nil)
	rules := []testsuite.Reply{{Match: "Sum up this conversation", Text: "so far: whales"}, {Match: fmt.Sprintf(`\Apage %d:`, readerPages), Text: "done"}}
	for i := range readerPages {
		r := testsuite.Reply{Match: fmt.Sprintf(`\Apage %d:`, i), Calls: []testsuite.Call{{Tool: "read", Arguments: map[string]any{"Page": i + 1}}}}
		if i == 0 {
			r.Match = `\Ago`
		} else if i == refused {
			r.Fail = []testsuite.Failure{{Kind: agent.FaultContext, HTTP: 400, Message: "too long"}}
		}
		rules = append(rules, r)
	}
	b := setup(t, agent.Definition{Instructions: "Read it all.", Compaction: c, Texts: map[agent.TextName]string{agent.TextLoopContractText: agent.NoText}}, testsuite.NewScript(rules...), read)
	small := b.acts.Agents["tester"]
	small.Spec.Window = readerWindow
	b.acts.Agents["tester"] = small
	return b
}

// compacted is the first compaction of a run, and what stands around it.
type compacted struct {
	event  agent.Event
	size   window.TokenEstimator // what the runtime knew of the model's tokens
	whole  []agent.Message       // the conversation that was compacted
	before model.Request         // the last request before the compaction
	asked  int                   // how many requests there were before it
	after  model.Request         // the first one after it
	at     int                   // where the summary stands in that
}

// firstCompaction runs the agent, and finds its first compaction.
func firstCompaction(t *testing.T, b *bench) (c compacted) {
	t.Helper()
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "done", o.Text)
	head, err := b.acts.Log.Head(t.Context(), o.Session)
	require.NoError(t, err)
	view, err := b.acts.Log.View(t.Context(), head.Digest)
	require.NoError(t, err)
	for _, e := range view.Events() {
		if e.Type == agent.EventCompacted {
			c.event = e
			break
		}
	}
	require.NotNil(t, c.event.Compaction)
	known := view.UpTo(c.event.Seq - 1)
	c.size, c.whole = window.NewTokenEstimator(known, known.Spec()), known.Messages()
	for _, r := range b.script.Requests() {
		switch at := slices.IndexFunc(r.Messages, func(m agent.Message) bool { return m.Note == agent.NoteSummary }); {
		case at < 0:
			c.before, c.asked = r, c.asked+1
		case at < len(r.Messages)-1: // a request for a summary ends with its note
			c.after, c.at = r, at
			return c
		}
	}
	require.Fail(t, "the model saw no conversation that was compacted")
	return c
}

// The messages at the beginning and the newest ones stay, word for word, as many as the agent says, and
// more where a call would lose its result. So do the instructions (HA-81).
func TestWhatStaysOfAConversation(t *testing.T) {
	for _, one := range []struct{ keepFirst, keepLast, first, last int }{
		{1, 2, 1, 2}, {0, 2, 0, 2}, {1, 4, 1, 4}, {3, 2, 3, 2},
		{2, 3, 3, 4}, // the second message is a call, and the third from the end is a result
		{0, -1, 0, 2},
	} {
		t.Run(fmt.Sprint(one.keepFirst, one.keepLast), func(t *testing.T) {
			c := firstCompaction(t, reader(t, agent.CompactionPolicy{KeepFirst: one.keepFirst, KeepLast: one.keepLast}, 0))
			require.Equal(t, "Read it all.", c.after.Instructions)
			require.Equal(t, one.first, c.at, "messages before the summary")
			require.Contains(t, c.after.Messages[c.at].Text(), "so far: whales")
			require.Equal(t, c.whole[:one.first], c.after.Messages[:c.at])
			require.Equal(t, c.whole[len(c.whole)-one.last:], c.after.Messages[c.at+1:])
			open := map[string]bool{}
			for _, m := range c.after.Messages {
				for _, p := range m.Parts {
					if p.Call != nil {
						open[p.Call.ID] = true
					} else if p.Result != nil {
						require.True(t, open[p.Result.Call], p.Result.Call)
						delete(open, p.Result.Call)
					}
				}
			}
			require.Empty(t, open, "calls without a result")
		})
	}
}

// A conversation is compacted as soon as it has more than the agent's share of the window, and no
// sooner (HA-81).
func TestTheThresholdOfACompaction(t *testing.T) {
	asked := map[float64]int{}
	for _, share := range []float64{0.4, 0, 1} {
		c := firstCompaction(t, reader(t, agent.CompactionPolicy{Threshold: share, KeepLast: 2}, 0))
		asked[share] = c.asked
		most := int64(readerLimit * cmp.Or(share, 0.8))
		require.LessOrEqual(t, c.size.RequestTokens(c.before.Messages), most, "%g: the last request before it", share)
		require.Greater(t, c.size.RequestTokens(c.whole), most, share)
	}
	require.Less(t, asked[0.4], asked[0])
	require.Less(t, asked[0], asked[1])
}

// A compaction is an event with its reason, its strategy, and the sizes of two requests: the one that was
// due before it, and the one that the model saw after it (HA-82).
func TestACompactionSaysItsSizes(t *testing.T) {
	for _, one := range []struct {
		strategy agent.CompactionStrategy
		refused  int // the page that the provider refuses
	}{{agent.CompactionHybrid, 0}, {agent.CompactionSummarizeAll, 0}, {agent.CompactionSummarizeMiddle, 0}, {agent.CompactionTruncate, 0}, {agent.CompactionHybrid, 3}} {
		t.Run(fmt.Sprint(one.strategy, one.refused), func(t *testing.T) {
			c := firstCompaction(t, reader(t, agent.CompactionPolicy{Strategy: one.strategy, KeepLast: 2}, one.refused))
			said := c.event.Compaction
			require.Equal(t, one.strategy, said.Strategy)
			before := c.before.Messages
			if one.refused > 0 {
				require.Equal(t, agent.CompactedForOverflow, said.Reason)
			} else {
				require.Equal(t, agent.CompactedForWindow, said.Reason)
				before = append(slices.Clip(before), c.whole[len(before):]...) // what came since was never sent as it was
				require.Greater(t, said.Before, c.size.RequestTokens(c.before.Messages))
			}
			require.Equal(t, c.size.RequestTokens(before), said.Before)
			require.Equal(t, c.size.RequestTokens(c.after.Messages), said.After)
			require.Less(t, said.After, said.Before)
		})
	}
}
