package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// The server gives what a workflow began with to what follows on it also where a cron
// schedule makes it anew. Whoever starts a run can so put a state instead of the one
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
		_, _ = signals.Update(t.Context(), v.temporal, run.Session, agent.ApproveCommand{Request: "q-1"}) // it may come between two executions
		if second == "" {
			return false
		}
		events := v.history(t, run.Session, second)
		failed := events[len(events)-1].GetWorkflowExecutionFailedEventAttributes()
		return failed.GetFailure().GetApplicationFailureInfo().GetType() == string(agent.CodeBadSignature)
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

// A reset keeps what stands in the history before it: also an approval, with the call that
// it began. The server then has the step done anew. The call is not made a second time: its
// outcome is unknown, as where a worker was lost with it.
func TestAResetDoesNotMakeACallAgain(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}, 4), make(chan struct{})
	pay := tool.New("pay", "pays", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
		begun <- struct{}{}
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return "paid", nil
	}, nil)
	s := setup(t, agent.Definition{Rules: []agent.Rule{{Do: agent.RulingAsk}}}, testsuite.NewScript(
		testsuite.Reply{Match: "^go", Calls: call("pay", nil)}, testsuite.Reply{Match: "paid|Unknown", Text: "done"}), pay)
	run := s.begin(t, "go", nil)
	_, err := s.Approve(t.Context(), s.suspended(t, run).Requests[0], nil)
	require.NoError(t, err)
	<-begun
	before := len(s.tasks(t, run.Session))
	require.NoError(t, s.temporal.SignalWorkflow(t.Context(), run.Session, "", "nonsense", nil)) // it makes a task in the midst of the call
	var tasks []int64
	require.Eventually(t, func() bool {
		tasks = s.tasks(t, run.Session)
		return len(tasks) > before
	}, patience, 10*time.Millisecond)
	close(goOn)
	first := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, first.Status, "%+v", first.Error)

	info, err := s.temporal.DescribeWorkflowExecution(t.Context(), run.Session, "")
	require.NoError(t, err)
	_, err = s.temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: info.GetWorkflowExecutionInfo().GetExecution(), Reason: "attack", RequestId: uuid.NewString(), WorkflowTaskFinishEventId: tasks[before],
	})
	require.NoError(t, err)
	out := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Empty(t, begun, "nobody approved it anew")
	require.Equal(t, 1, out.Tools[0].Unknown, "%+v", out.Tools)
}
