package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
)

// A late answer by update is refused, and recorded all the same; the next request to the model ends with a
// note of it, which no transcript has, and the one after that does not (HX-59).
func TestLateAnswersAreRecordedAndRefused(t *testing.T) {
	b := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(time.Hour), Default: "Oslo"}},
		testsuite.NewScript(asks("Where to?"), asks("How?"), asks("When?"), testsuite.Reply{Text: "done"}))
	var first, second *answer
	b.after(90*time.Minute, func() {
		first = b.say("answer", "u-1", `{"request":"q-1","text":"Rome","by":"ana"}`)
		second = b.say("answer", "u-2", `{"request":"q-1","text":"Paris","by":"bo"}`)
	})
	b.after(100*time.Minute, func() { b.signal("answer", `{"request":"q-2","text":"by train"}`) })
	o := b.start(t, agent.Start{})
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "Oslo", rows(b, 1)[0].Text, "the deadline's decision stands")
	require.ErrorContains(t, first.err, "the late answer is recorded")
	require.ErrorContains(t, second.err, "was decided by its deadline")
	require.NotContains(t, second.err.Error(), "recorded")
	late := 0
	for _, e := range b.events(t) {
		if e == agent.EventRequestAnsweredLate {
			late++
		}
	}
	require.Equal(t, 1, late)
	var noted []int
	for i, req := range b.script.Requests() {
		for _, m := range req.Messages {
			if m.Note == agent.NoteLateAnswer {
				require.Contains(t, m.Text(), `"ana" answered it: "Rome"`)
				noted = append(noted, i)
			}
		}
	}
	require.Equal(t, []int{2}, noted)
}
