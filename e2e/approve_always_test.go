package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
)

// Whoever approves a call may approve the tool for the whole run: further calls are made without a
// question, also after a later suspension and in a new execution, and the next run of the session asks
// again. An approval of one call holds for that call (HA-116).
func TestAnApprovalForTheRunSurvivesAResume(t *testing.T) {
	t.Parallel()
	s := early(t, 30)
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		switch said := lastSaid(r); {
		case said.Role == agent.RoleUser && said.Text() != "done":
			return asksFor(model.CallPart("", "pay", `{}`))
		case said.Role == agent.RoleUser:
			return saysText("paid")
		}
		return asksFor(model.CallPart("", agent.WaitForUserTool, `{}`))
	})
	pay := tool.New("pay", "pays", func(context.Context, *tool.Call, struct{}) (string, error) { return "paid", nil }, nil)
	def := agent.Definition{Name: "tester", Tools: []string{"pay", agent.WaitForUserTool}, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"p*"}}}}
	s.startWorker(t, m, []tool.Tool{pay}, def)

	run := s.begin(t, "pay", nil)
	approve := func(always bool) {
		q := s.suspended(t, run).Requests[0]
		require.Equal(t, agent.RequestApproval, q.Type)
		s.say(t, run, agent.ApproveCommand{Request: q.ID, Always: always})
	}
	waits := func() {
		q := s.suspended(t, run).Requests[0]
		require.Equal(t, agent.RequestQuestion, q.Type, "the call was made, and the model waits for the user")
	}
	approve(false)
	waits()
	s.say(t, run, agent.SendCommand{Text: "again"})
	approve(true) // the first approval was for one call
	waits()
	for range 2 {
		s.push(t, run.Session, 1)
		s.say(t, run, agent.SendCommand{Text: "again"})
		waits()
	}
	s.say(t, run, agent.SendCommand{Text: "done"})
	require.Equal(t, agent.StatusCompleted, s.result(t, run).Status)
	require.Equal(t, 4, s.events(t, run, agent.EventCallDone)/2, "each message made a payment and a wait")

	run = s.begin(t, "pay", &client.StartOptions{Session: run.Session})
	require.Equal(t, agent.RequestApproval, s.suspended(t, run).Requests[0].Type, "another run")
	s.say(t, run, agent.CancelCommand{})
}
