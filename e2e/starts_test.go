package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/testsuite"
)

// Of fifty starts at once one begins, and is there for everybody before any worker
// is; the others are told which. Nor does a start take the place of a run that is
// suspended (HX-05, HX-06, HX-07, HX-08, HX-09, HX-85,
// HA-99).
func TestOneOfFiftyStartsBegins(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	session := "starts-" + s.queue
	_, err := s.Get(t.Context(), session)
	require.ErrorIs(t, err, agent.CodeNotFound)
	start := func(ctx context.Context, _ int) error {
		run, err := s.Start(ctx, "tester", "go", &client.StartOptions{Session: session})
		if err != nil {
			return err
		}
		same, err := s.Get(ctx, session)
		require.NoError(t, err)
		require.Equal(t, run.ID, same.ID)
		return nil
	}
	won, lost := s.race(t, 50, start)
	require.Equal(t, 1, won)
	run, err := s.Get(t.Context(), session)
	require.NoError(t, err)
	for _, err := range lost {
		var e *agent.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, []any{agent.CodeBusy, session, run.ID}, []any{e.Code, e.Session, e.Run})
	}
	s.work(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(asks("Where to?"), testsuite.Reply{Text: "done"}))
	q := s.suspended(t, run).Requests[0]
	require.ErrorIs(t, start(t.Context(), 0), agent.CodeBusy)
	_, err = s.Answer(t.Context(), q, "Rome", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, s.rest(t, run).Status)
	runs, err := s.Runs(t.Context(), session)
	require.NoError(t, err)
	require.Len(t, runs, 1)
}
