package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// What was left as a signal before a worker took the run counts before its first turn: a hold holds it, a stop asks no
// model, a message is in the first request, and what is refused hinders nothing.
func TestSignalsBeforeAWorkerCountBeforeTheFirstTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		say    agent.Command
		status agent.Status
		asked  int
	}{
		"pause":     {agent.PauseCommand{Reason: "not yet"}, agent.StatusSuspended, 0},
		"interrupt": {agent.InterruptCommand{Reason: "not yet"}, agent.StatusSuspended, 0},
		"stop":      {agent.StopCommand{Reason: "enough"}, agent.StatusStopped, 0},
		"message":   {agent.SendCommand{Text: "be quick"}, agent.StatusCompleted, 2},
		"refused":   {agent.ResumeCommand{Suspension: "s-9"}, agent.StatusCompleted, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := on(t, shared(t))
			t.Cleanup(func() { s.replay(t) })
			run, err := s.Start(t.Context(), "tester", "go", nil)
			require.NoError(t, err)
			require.NoError(t, s.temporal.SignalWorkflow(t.Context(), run.Session, "", string(c.say.Verb()), c.say))
			script := testsuite.NewScript(testsuite.Reply{Calls: call("pay", nil)}, testsuite.Reply{Text: "done"})
			paid := 0
			s.work(t, agent.Definition{}, script, tool.New("pay", "Pays.", func(context.Context, *tool.Call, struct{}) (string, error) {
				paid++
				return "paid", nil
			}, nil))
			out := s.rest(t, run)
			require.Equal(t, c.status, out.Status, "%+v", out.Error)
			require.Len(t, script.Requests(), c.asked)
			require.Equal(t, c.asked/2, paid)
			if c.asked == 0 {
				require.Zero(t, out.Turns)
				return
			}
			if name == "message" {
				require.Contains(t, textOf(script.Requests()[0]), "be quick")
			}
		})
	}
}

// textOf returns the texts of a request's messages.
func textOf(r model.Request) (text string) {
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			text += p.Text + "\n"
		}
	}
	return text
}
