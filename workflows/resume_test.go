package workflows_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
)

// parks is a reply that parks the run.
func parks(arguments map[string]any) testsuite.Reply {
	return testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AwaitResumptionTool, Arguments: arguments}}}
}

// A park without a reason, or with conditions that can't be meant, is no park: the
// model is told what is wrong and where, and the turn counts (HL-14, HL-21, HL-22).
func TestParksThatCantBeMeant(t *testing.T) {
	type fields = map[string]any
	until := func(conditions fields) testsuite.Reply {
		return parks(fields{"reason": "wait", "conditions": conditions})
	}
	paid := func(match string) fields {
		return fields{"event": fields{"topic": "paid", "match": json.RawMessage(match)}}
	}
	cases := []struct {
		call testsuite.Reply
		says string
	}{
		{parks(fields{"reason": "  "}), "reason"},
		{parks(fields{"conditions": fields{"after": "1h"}}), "reason"},
		{until(fields{"event": fields{"topic": "bad topic"}}), `topic "bad topic"`},
		{until(fields{"timeout": fields{"extra": true}}), "conditions.timeout"},
		{until(fields{"after": "-1h"}), "conditions.after must be positive"},
		{until(fields{"after": "1h", "at": "2099-01-01T00:00:00Z"}), "conditions.at and after"},
		{until(fields{"any": slices.Repeat([]fields{{"after": "1h"}}, 9)}), "at most 8"},
		{until(paid(`{"$ref":"#"}`)), "conditions.event.match"},
		{until(paid(`{"enum":["` + strings.Repeat("x", 2<<10) + `"]}`)), "at most 2048 are taken"},
		{until(fields{"after": "1h", "on_timeout": agent.OnTimeoutResumeWithInput, "input": strings.Repeat("x", 64<<10)}), "at most 65536 are taken"},
	}
	var replies []testsuite.Reply
	for _, c := range cases {
		replies = append(replies, c.call)
	}
	b := setup(t, agent.Definition{Tools: []string{agent.AwaitResumptionTool}}, testsuite.NewScript(append(replies, testsuite.Reply{Text: "done"})...))
	begun := b.Now()
	o := b.start(t, agent.Start{Limits: agent.Limits{Turns: len(cases) + 1}})
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, len(cases)+1, o.Turns)
	require.Zero(t, o.SuspendedFor)
	require.Less(t, b.Now().Sub(begun), time.Hour)
	for i, c := range cases {
		result := rows(b, i+1)[0]
		require.Equal(t, agent.CallRejected, result.Status)
		require.Contains(t, result.Text, c.says)
	}
}

// resumed parks a run after a turn, and returns what the model is sent when
// somebody has resumed it.
func resumed(t *testing.T, resume string, replies ...testsuite.Reply) []agent.Message {
	t.Helper()
	b := setup(t, agent.Definition{Tools: []string{agent.AwaitResumptionTool}}, testsuite.NewScript(append([]testsuite.Reply{
		{Text: "I look.", Calls: []testsuite.Call{{Tool: "nowhere", Arguments: map[string]any{}}}},
		parks(map[string]any{"reason": "the shop is closed"}),
	}, replies...)...))
	b.after(time.Hour, func() { b.signal("resume", resume) })
	o := b.start(t, agent.Start{})
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	asked := b.script.Requests()
	return asked[len(asked)-1].Messages
}

// A resume keeps all that was said before, and what it says itself comes last; the
// note behind it, which names that too, is told once (HL-32, HL-34, HX-24).
func TestAResumeKeepsWhatWasSaid(t *testing.T) {
	messages := resumed(t, `{"message":"it is open"}`, testsuite.Reply{Text: "done"})
	var said []string
	for _, m := range messages {
		raw, err := json.Marshal(m)
		require.NoError(t, err)
		said = append(said, string(raw))
	}
	require.Len(t, said, 7)
	for i, want := range []string{`"go"`, "I look.", "Tool not found", "the shop is closed", "You were suspended and continue now", "it is open", `You were suspended at turn 2 for the reason \"the shop is closed\" and continue at`} {
		require.Contains(t, said[i], want)
	}
	require.True(t, strings.HasSuffix(messages[6].Text(), "Z. Somebody resumed you. The input: \"it is open\""), messages[6].Text())
}

// A fresh resume continues from a summary and what it says (HL-33).
func TestAFreshResumeKeepsASummary(t *testing.T) {
	messages := resumed(t, `{"from_summary":true,"message":"it is open"}`,
		testsuite.Reply{Match: "Your summary will replace", Text: "we went to a shop"}, testsuite.Reply{Match: "You were suspended", Text: "done"})
	require.Len(t, messages, 3)
	require.Contains(t, messages[0].Text(), "we went to a shop")
	require.Equal(t, "it is open", messages[1].Text())
	require.Equal(t, agent.NoteResumed, messages[2].Note)
	require.Regexp(t, `^You were suspended at turn 2 for the reason "the shop is closed" and continue at \S+\. Somebody resumed you\. The input: "it is open"$`, messages[2].Text())
}
