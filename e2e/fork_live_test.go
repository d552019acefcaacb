package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// A fork of a live run asks under new numbers, also where what the live run has asked
// is not stored yet: no button of the one stands for a question of the other (OA-87).
func TestAForkOfALiveRunCountsOn(t *testing.T) {
	t.Parallel()
	approved := make(chan struct{})
	look := tool.New("look", "looks around", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
		select {
		case <-approved: // until then the run does not rest, and stores nothing
		case <-ctx.Done():
		}
		return "nothing", nil
	}, nil)
	l := &till{}
	pay := call("pay", map[string]any{"amount": 1})
	s := setup(t, agent.Definition{Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}}}}, testsuite.NewScript(
		testsuite.Reply{Match: "pay once more", Calls: pay},
		testsuite.Reply{Calls: append(call("look", map[string]any{}), pay...)}, testsuite.Reply{Text: "done", Delay: time.Minute},
	), look, l.tool())
	run := s.begin(t, "go", nil)
	s.until(t, run, agent.EventRequestOpened)
	_, err := s.Approve(t.Context(), agent.Request{ID: "q-1", Session: run.Session}, nil)
	require.NoError(t, err)
	close(approved)
	s.until(t, run, agent.EventTurnEnded)
	anew, err := s.Fork(t.Context(), run.Session, &client.ForkOptions{NewSession: true, Text: "pay once more"})
	require.NoError(t, err)
	fork, err := anew.Start(t.Context())
	require.NoError(t, err)
	require.Equal(t, "q-2", s.suspended(t, fork).Requests[0].ID)
	for _, there := range []string{run.Session, fork.Session} { // it would go on there
		_, err = s.Fork(t.Context(), run.Session, &client.ForkOptions{NewSession: true, Session: there, Text: "again"})
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		require.ErrorContains(t, err, "session "+there+" exists; name another one for the fork")
	}
	for _, r := range []*client.Run{run, fork} {
		_, err = r.Cancel(t.Context(), "", nil)
		require.NoError(t, err)
		s.rest(t, r)
	}
}
