package main

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	temporal "go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
)

// stuck is a store that tells nothing of heads before it is let go.
type stuck struct {
	store.Store
	free chan struct{}
}

func (s *stuck) Head(ctx context.Context, session string) (store.Head, error) {
	select {
	case <-s.free:
		return s.Store.Head(ctx, session)
	case <-ctx.Done():
		return store.Head{}, agent.Errorf(agent.CodeStoreUnavailable, "reading the head of session %s: %w", session, ctx.Err())
	}
}

// A verb that waits for a run to begin is refused with a code if the run is cancelled
// meanwhile.
func TestAVerbThatMeetsACancel(t *testing.T) {
	s := scripted(t, role{agent.Definition{Name: "a"}, []testsuite.Reply{{Text: "never"}}})
	free := make(chan struct{})
	s.options.Store = &stuck{s.options.Store, free}
	s.works()
	for verb, payload := range map[agent.Verb]string{agent.VerbResume: `{"id":"x"}`, agent.VerbSend: `{"id":"x","text":"hi"}`, agent.VerbApprove: `{"id":"x","request":"q-1"}`} {
		run := s.begin(string(verb), "a", nil)
		update, err := s.temporal.UpdateWorkflow(t.Context(), temporal.UpdateWorkflowOptions{
			WorkflowID: run.Session, UpdateName: string(verb), Args: []any{json.RawMessage(payload)}, WaitForStage: temporal.WorkflowUpdateStageAccepted,
		})
		require.NoError(t, err)
		require.NoError(t, s.temporal.CancelWorkflow(t.Context(), run.Session, ""))
		s.heeds(run.Session)
		defer func() {
			var refused *sdk.ApplicationError
			require.ErrorAs(t, update.Get(context.Background(), nil), &refused)
			require.Equal(t, string(agent.CodeClosed), refused.Type())
			var e agent.Error
			require.NoError(t, refused.Details(&e))
			require.Equal(t, []any{agent.CodeClosed, agent.StatusCancelled, run.ID}, []any{e.Code, e.Status, e.Run})
			require.Equal(t, agent.StatusCancelled, s.rests(run).Status)
		}()
	}
	said := s.begin("said", "a", nil)
	refused := make(chan ran)
	go func() { refused <- s.run("resume", said.Session) }()
	s.follow(said.Session, enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED)
	require.NoError(t, s.temporal.CancelWorkflow(t.Context(), said.Session, ""))
	s.heeds(said.Session)
	close(free)
	r := <-refused
	require.Equal(t, 6, r.exit)
	require.Contains(t, r.err, "[closed] ")
}

// heeds waits until a workflow's task has taken its cancellation.
func (s *stage) heeds(session string) {
	s.t.Helper()
	s.follow(session, enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED, enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED)
}

// follow waits until a workflow's history has events of these types, in this order.
func (s *stage) follow(session string, types ...enums.EventType) {
	s.t.Helper()
	h := s.temporal.GetWorkflowHistory(s.t.Context(), session, "", true, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for len(types) > 0 && h.HasNext() {
		e, err := h.Next()
		require.NoError(s.t, err)
		if e.GetEventType() == types[0] {
			types = types[1:]
		}
	}
	require.Empty(s.t, types)
}
