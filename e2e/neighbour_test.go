package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// The server gives what a workflow began with to what follows on it also where a cron
// schedule makes it anew. Whoever starts a run can so put a state in the place of the one
// that an execution hands on: here one whose request needs no approver.
func TestAForgedStateIsNotTaken(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	run := v.begin(t, "go", nil)
	v.suspended(t, run)
	answer, err := v.temporal.QueryWorkflow(t.Context(), run.Session, "", "state")
	require.NoError(t, err)
	var state any
	require.NoError(t, answer.Get(&state))
	forged := without(t, state, "approvers")
	require.NoError(t, v.temporal.TerminateWorkflow(t.Context(), run.Session, "", "attack"))
	_, err = v.temporal.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{
		ID: run.Session, TaskQueue: v.queue, CronSchedule: "@every 1s",
	}, signals.WorkflowType, map[string]any{"agent": "nobody", "input": map[string]any{"text": "x"}}, forged)
	require.NoError(t, err)
	t.Cleanup(func() { _ = v.temporal.TerminateWorkflow(t.Context(), run.Session, "", "over") })

	var second string // the first execution that cron made of it
	require.Eventually(t, func() bool {
		begun := v.history(t, run.Session, "")[0].GetWorkflowExecutionStartedEventAttributes()
		if second == "" && begun.GetContinuedExecutionRunId() != "" {
			second = begun.GetOriginalExecutionRunId()
		}
		_, _ = signals.Say(t.Context(), v.temporal, run.Session, agent.ApproveOrder{Request: "q-1"}) // it may come between two executions
		if second == "" {
			return false
		}
		events := v.history(t, run.Session, second)
		failed := events[len(events)-1].GetWorkflowExecutionFailedEventAttributes()
		return failed.GetFailure().GetApplicationFailureInfo().GetType() == string(agent.BadSignature)
	}, patience, 100*time.Millisecond)
	require.Empty(t, v.cards, "nobody approved it")
}

// without removes a field wherever it stands in what JSON has become.
func without(t *testing.T, v any, field string) any {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		delete(v, field)
		for _, e := range v {
			without(t, e, field)
		}
	case []any:
		for _, e := range v {
			without(t, e, field)
		}
	}
	return v
}
