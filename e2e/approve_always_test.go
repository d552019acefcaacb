package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// asksToPay is a stage where each message makes a payment that somebody has to approve ("both" makes two,
// "delegate" lets a sub-agent make it), and "done" ends the run.
func asksToPay(t *testing.T) *stage {
	s := early(t, 30)
	s.paying(t, nil)
	return s
}

// paying starts a worker for [asksToPay].
func (s *stage) paying(t *testing.T, policy agent.Policy) *worker.Worker {
	t.Helper()
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		switch said := lastSaid(r); {
		case said.Role == agent.RoleUser && said.Text() == "both":
			return asksFor(model.CallPart("", "pay", `{}`), model.CallPart("", "pay", `{"n":2}`))
		case said.Role == agent.RoleUser && said.Text() == "delegate":
			return asksFor(model.CallPart("", agent.SubAgentPrefix+"tester", `{"task":"pay"}`))
		case said.Role == agent.RoleUser && said.Text() != "done":
			return asksFor(model.CallPart("", "pay", `{}`))
		case said.Role == agent.RoleUser:
			return saysText("paid")
		}
		return asksFor(model.CallPart("", agent.WaitForUserTool, `{}`))
	})
	pay := tool.New("pay", "pays", func(context.Context, *tool.Call, struct {
		N int `json:"n,omitempty"`
	}) (string, error) {
		return "paid", nil
	}, nil)
	def := agent.Definition{Name: "tester", Model: "brain", Tools: []string{"pay", agent.WaitForUserTool}, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"p*"}}}}
	waits(&def)
	other, lead := def, agent.Definition{Name: "lead", Model: "brain", Tools: []string{"pay"}, Agents: []agent.SubAgent{{Agent: "tester"}}, Rules: def.Rules}
	other.Name = "other"
	waits(&lead)
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Agents: []agent.Definition{def, other, lead}, Tools: []tool.Tool{pay}, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon,
		Models: map[string]model.Model{"brain": m}, ExportKeys: exportKeys, ApprovalKeys: exportKeys, Policy: policy,
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	return w
}

// Whoever approves a call may approve the tool for the whole run: further calls are made without a
// question, also after a later suspension and in a new execution, and the next run of the session asks
// again. An approval of one call holds for that call (HA-116).
func TestAnApprovalForTheRunSurvivesAResume(t *testing.T) {
	t.Parallel()
	s := asksToPay(t)
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

// Whoever approves a call may approve the tool for the whole session: also later runs of it make calls
// without a question, if the same principal starts them with the same agent. Forks, and a run that begins
// anew, ask again. A session of nobody in particular has no such approval (HA-116).
func TestAnApprovalForTheSession(t *testing.T) {
	t.Parallel()
	s := asksToPay(t)
	asks := func(run *client.Run) agent.RequestType { return s.suspended(t, run).Requests[0].Type }
	ends := func(run *client.Run) {
		s.say(t, run, agent.CancelCommand{})
		s.result(t, run)
	}

	run := s.begin(t, "pay", nil)
	q := s.suspended(t, run).Requests[0]
	_, err := signals.Update(t.Context(), s.temporal, run.Session, agent.ApproveCommand{Request: q.ID, AlwaysInSession: true})
	require.ErrorContains(t, err, "nobody is named as who started this run")
	ends(run)

	run = s.begin(t, "both", &client.StartOptions{By: "ana"})
	approve := func(run *client.Run) {
		s.say(t, run, agent.ApproveCommand{Request: s.suspended(t, run).Requests[0].ID, AlwaysInSession: true})
		require.Equal(t, agent.RequestQuestion, asks(run), "it is for the other call, too")
	}
	approve(run)
	s.push(t, run.Session, 1)
	s.say(t, run, agent.SendCommand{Text: "again"})
	require.Equal(t, agent.RequestQuestion, asks(run), "it survives a resume, and a new execution")
	ends(run)

	for _, c := range []struct {
		why   string
		agent string
		o     client.StartOptions
		want  agent.RequestType
	}{
		{"another principal", "tester", client.StartOptions{By: "bob"}, agent.RequestApproval},
		{"nobody in particular", "tester", client.StartOptions{}, agent.RequestApproval},
		{"another agent", "other", client.StartOptions{By: "ana"}, agent.RequestApproval},
		{"the same", "tester", client.StartOptions{By: "ana"}, agent.RequestQuestion},
		{"a run that begins anew", "tester", client.StartOptions{By: "ana", Carry: agent.CarryReset}, agent.RequestApproval},
		{"and what it forgot", "tester", client.StartOptions{By: "ana"}, agent.RequestApproval},
	} {
		c.o.Session = run.Session
		next, err := s.Start(t.Context(), c.agent, "pay", &c.o)
		require.NoError(t, err, c.why)
		require.Equal(t, c.want, asks(next), c.why)
		ends(next)
	}
}
