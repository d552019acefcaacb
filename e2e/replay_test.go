package e2e

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/workflows"
)

// maxReplays bounds how many histories of one test are replayed.
const maxReplays = 40

// replay replays the histories that a test has made: whatever the order in which
// things came, the workflow code makes the same of it again.
func (s *stage) replay(t *testing.T) {
	if t.Failed() {
		return
	}
	page, err := s.temporal.ListWorkflow(context.Background(), &workflowservice.ListWorkflowExecutionsRequest{
		Query: "WorkflowType = '" + signals.WorkflowType + "' AND TaskQueue = '" + s.queue + "'", PageSize: maxReplays,
	})
	require.NoError(t, err)
	for _, info := range page.GetExecutions() {
		execution := info.GetExecution()
		history := &historypb.History{}
		events := s.temporal.GetWorkflowHistory(context.Background(), execution.GetWorkflowId(), execution.GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			require.NoError(t, err)
			history.Events = append(history.Events, e)
		}
		shell := &workflows.Shell{Tails: activities.NewTails(), Flights: activities.NewFlights()}
		r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{Interceptors: []interceptor.WorkerInterceptor{shell.Interceptor()}})
		require.NoError(t, err)
		shell.Register(r)
		require.NoError(t, r.ReplayWorkflowHistoryWithOptions(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history, worker.ReplayWorkflowHistoryOptions{
			OriginalExecution: workflow.Execution{ID: execution.GetWorkflowId(), RunID: history.Events[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()},
		}), "replaying %s", execution.GetWorkflowId())
	}
}
