package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/testsuite"
)

// A person answers, approves or rejects, or nobody does in time. The next request ends with one note: at which
// turn the run was suspended and why, who ended that, what came with it, and the time. The request after it
// has none, and the transcript never has (HL-34, HL-35).
func TestTheNoteAfterAnAnswer(t *testing.T) {
	t.Parallel()
	asks := testsuite.Reply{Calls: call(agent.AskUserTool, map[string]any{"question": "Where to?"})}
	pays := testsuite.Reply{Calls: call("echo", map[string]any{"text": "4111"})}
	first := func(reason, what string) string {
		return `^You were suspended at turn 1 for the reason "` + reason + `\?" and continue at 20[-0-9T:]+Z\. Request q-1 \(` + what + `\), open since 20[-0-9T:]+Z, was `
	}
	question, approval := first("Where to", "a question"), first("Run echo", "the approval of echo")
	for name, c := range map[string]struct {
		asks     testsuite.Reply
		deadline time.Duration
		decide   agent.Command
		note     string
	}{
		"an answer":   {asks, 0, agent.AnswerCommand{CommandHeader: agent.CommandHeader{By: "ana"}, Request: "q-1", Text: "to Rome"}, question + `answered by "ana"\. The input: "to Rome"$`},
		"nobody":      {asks, 100 * time.Millisecond, nil, question + `decided by its deadline, since nobody had answered\.$`},
		"an approval": {pays, 0, agent.ApproveCommand{CommandHeader: agent.CommandHeader{By: "ana"}, Request: "q-1", Arguments: json.RawMessage(`{"text":"4222"}`)}, approval + `approved by "ana"\.$`},
		"a denial":    {pays, 0, agent.RejectCommand{Request: "q-1", Reason: "too dear"}, approval + `rejected\. The input: "too dear"$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := testsuite.NewScript(c.asks, testsuite.Reply{Calls: call("look", nil)}, testsuite.Reply{Text: "done"})
			def := agent.Definition{Tools: []string{agent.AskUserTool}, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"echo"}}}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(c.deadline)}}
			s := setup(t, def, script, looks(), echo(nil))
			run := s.begin(t, "go", &client.StartOptions{})
			if c.decide != nil {
				s.suspended(t, run)
				s.say(t, run, c.decide)
			}
			o := s.result(t, run)
			require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
			var notes []string
			for i, r := range script.Requests() {
				for k, m := range r.Messages {
					if m.Note == agent.NoteResumed {
						require.Equal(t, []int{1, len(r.Messages) - 1}, []int{i, k}, "it ends the first request after the suspension")
						notes = append(notes, m.Text())
					}
				}
			}
			require.Len(t, notes, 1)
			require.Regexp(t, c.note, notes[0])
			messages, err := s.Transcript(t.Context(), run.Session)
			require.NoError(t, err)
			require.NotContains(t, messagesText(messages), "You were suspended at")
		})
	}
}
