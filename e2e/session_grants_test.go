package e2e

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
)

// granted begins a run of ana that waits for the user, with an approval of pay for the session.
func (s *stage) granted(t *testing.T) *client.Run {
	t.Helper()
	run := s.begin(t, "pay", &client.StartOptions{By: "ana"})
	s.say(t, run, agent.ApproveCommand{Request: s.suspended(t, run).Requests[0].ID, AlwaysInSession: true})
	require.Equal(t, agent.RequestQuestion, s.asks(t, run))
	return run
}

// asks returns what a suspended run asks for.
func (s *stage) asks(t *testing.T, run *client.Run) agent.RequestType {
	t.Helper()
	return s.suspended(t, run).Requests[0].Type
}

func (s *stage) cancels(t *testing.T, run *client.Run) {
	t.Helper()
	s.say(t, run, agent.CancelCommand{})
	s.result(t, run)
}

// A run that begins from a checkpoint asks again, in the session and in a new one: what was approved is not
// what happens now.
func TestAForkAsksAgain(t *testing.T) {
	t.Parallel()
	s := asksToPay(t)
	for _, elsewhere := range []bool{true, false} {
		run := s.granted(t)
		s.say(t, run, agent.SendCommand{Text: "done"})
		require.Equal(t, agent.StatusCompleted, s.result(t, run).Status)

		prepared, err := s.Fork(t.Context(), run.Session, &client.ForkOptions{Text: "pay", NewSession: elsewhere, By: "ana"})
		require.NoError(t, err)
		fork, err := prepared.Start(t.Context())
		require.NoError(t, err)
		require.Equal(t, agent.RequestApproval, s.asks(t, fork))
		s.cancels(t, fork)
	}
}

// Whoever imports a session is asked again: for a run that has ended there, and for one that waits.
func TestAnImportAsksAgain(t *testing.T) {
	t.Parallel()
	s := asksToPay(t)
	run := s.granted(t)
	waiting := s.export(t, run.Session, client.ExportOptions{})
	s.cancels(t, run)
	ended := s.export(t, run.Session, client.ExportOptions{})

	there := elsewhere(t)
	there.paying(t, nil)
	_, err := there.bring(t, waiting)
	require.NoError(t, err)
	moved := there.here(t, run.Session)
	there.say(t, moved, agent.SendCommand{Text: "pay"})
	require.Equal(t, agent.RequestApproval, there.asks(t, moved))
	there.cancels(t, moved)
	next := there.begin(t, "pay", &client.StartOptions{Session: run.Session, By: "ana"})
	require.Equal(t, agent.RequestApproval, there.asks(t, next))
	there.cancels(t, next)

	there = elsewhere(t)
	there.paying(t, nil)
	_, err = there.bring(t, ended)
	require.NoError(t, err)
	next = there.begin(t, "pay", &client.StartOptions{Session: run.Session, By: "ana"})
	require.Equal(t, agent.RequestApproval, there.asks(t, next))
	there.cancels(t, next)
}

// An approval for the session that comes with an import by nobody in particular is refused before the
// export is used up.
func TestAnImportByNobodyGrantsNothing(t *testing.T) {
	t.Parallel()
	s := asksToPay(t)
	run := s.begin(t, "pay", &client.StartOptions{By: "ana"})
	answer := []agent.AnswerTo{{Request: s.suspended(t, run).Requests[0].ID, Approve: &agent.ApproveCommand{AlwaysInSession: true}}}
	file := s.export(t, run.Session, client.ExportOptions{})
	s.cancels(t, run)

	there := elsewhere(t)
	there.paying(t, nil)
	o := &client.ImportOptions{Keys: exportKeys, Answers: answer}
	_, err := there.Import(t.Context(), bytes.NewReader(file), o)
	require.ErrorContains(t, err, "nobody is named as who started this run")
	o.By = "bo"
	_, err = there.Import(t.Context(), bytes.NewReader(file), o)
	require.NoError(t, err, "it is not used up")
	moved := there.here(t, run.Session)
	require.Equal(t, agent.RequestQuestion, there.asks(t, moved))
	there.cancels(t, moved)
}

// Whoever may not approve any longer has approved nothing for later runs.
func TestAPolicyBindsAnApprovalForTheSession(t *testing.T) {
	t.Parallel()
	s := early(t, 30)
	w := s.paying(t, nil)
	run := s.granted(t)
	s.cancels(t, run)
	w.Stop()

	s.paying(t, agent.Policy{{Verbs: []agent.Verb{agent.VerbApprove}, Principals: []string{"cy"}}})
	next := s.begin(t, "pay", &client.StartOptions{Session: run.Session, By: "ana"})
	require.Equal(t, agent.RequestApproval, s.asks(t, next), "only cy may approve")
	s.cancels(t, next)
}

// A sub-agent's session has no later runs of a person, so nothing is approved for it.
func TestASubAgentHasNoApprovalForTheSession(t *testing.T) {
	t.Parallel()
	s := asksToPay(t)
	run, err := s.Start(t.Context(), "lead", "delegate", &client.StartOptions{By: "ana"})
	require.NoError(t, err)
	s.suspended(t, run)
	child, err := s.Get(t.Context(), run.Session+"/tester-1")
	require.NoError(t, err)
	q := s.suspended(t, child).Requests[0]
	_, err = signals.Update(t.Context(), s.temporal, child.Session, agent.ApproveCommand{Request: q.ID, AlwaysInSession: true})
	require.ErrorContains(t, err, "a sub-agent's session has no later runs")
	s.cancels(t, run)
}

// An approval of all calls of a tool leaves a call rejected that the same answers reject.
func TestAnswersKeepARejection(t *testing.T) {
	t.Parallel()
	s := asksToPay(t)
	run := s.begin(t, "both", &client.StartOptions{By: "ana"})
	q := s.suspended(t, run).Requests
	require.Len(t, q, 2)
	_, err := signals.Update(t.Context(), s.temporal, run.Session, agent.AnswersCommand{Answers: []agent.AnswerTo{
		{Request: q[0].ID, Approve: &agent.ApproveCommand{Always: true}}, {Request: q[1].ID, Reject: &agent.RejectCommand{Reason: "no"}},
	}})
	require.NoError(t, err)
	require.Equal(t, agent.RequestQuestion, s.asks(t, run))
	s.cancels(t, run)
	require.Equal(t, 1, s.events(t, run, agent.EventCallApproved))
	require.Equal(t, 1, s.events(t, run, agent.EventCallRejected))
}
