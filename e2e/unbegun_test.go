package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
)

// A start that ends the session's live run, and never begins, hides nothing: whoever reads the events is told
// that some lack.
func TestARunThatNeverBeganHidesNoEvents(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	atWork := make(chan struct{}, 1)
	s.startWorker(t, func(ctx context.Context, _ *model.Request) *model.Reply {
		atWork <- struct{}{}
		<-ctx.Done()
		return nil
	}, nil, agent.Definition{Name: "tester"})
	run := s.begin(t, "pay", nil)
	<-atWork
	lines, err := read(t.Context(), s.Client, run.Session, client.EventsOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, lines)
	over, err := s.temporal.ExecuteWorkflow(t.Context(), sdkclient.StartWorkflowOptions{
		ID: run.Session, TaskQueue: "nowhere", WorkflowRunTimeout: time.Second, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
	}, signals.WorkflowType)
	require.NoError(t, err)
	require.Error(t, over.Get(t.Context(), nil))
	require.Eventually(t, func() bool {
		_, err = read(t.Context(), s.Client, run.Session, client.EventsOptions{})
		return err != nil // the listing may be behind
	}, patience, 20*time.Millisecond)
	require.ErrorIs(t, err, agent.CodeNoWorker)
	require.ErrorContains(t, err, "the session's next run recovers")
}

// A run that the plain temporal CLI started has no attributes before a worker takes it. Listings show it as
// pending, and find it as such.
func TestAPlainStartIsListedAsPending(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	run, err := s.temporal.ExecuteWorkflow(t.Context(), sdkclient.StartWorkflowOptions{ID: "plain-" + s.queue, TaskQueue: s.queue}, signals.WorkflowType, agent.Start{V: 1, Agent: "tester"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		for r, err := range s.List(t.Context(), &client.ListOptions{Status: agent.StatusPending, TaskQueue: s.queue}) {
			require.NoError(t, err)
			return r.Session == run.GetID() && r.Status == agent.StatusPending && !r.Since.IsZero()
		}
		return false
	}, patience, 20*time.Millisecond)
}
