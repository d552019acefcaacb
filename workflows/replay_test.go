package workflows_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/internal/observers"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/workflows"
)

// Histories of every shape that was ever released are replayed: a change of the
// machine or of its shell that breaks one needs a version gate. They are recorded
// by e2e, with -record (HX-91).
func TestRecordedHistoriesReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/history/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			history := &historypb.History{}
			require.NoError(t, temporalproto.CustomJSONUnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, history))
			begun := history.Events[0].GetWorkflowExecutionStartedEventAttributes()
			seen := &watcher{}
			set := observers.New([]observe.Observer{seen}, slog.New(slog.DiscardHandler))
			shell := &workflows.Shell{LogCache: activities.NewLogCache(), InFlight: activities.NewInFlight(), Observers: set}
			r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{Interceptors: []interceptor.WorkerInterceptor{shell.Interceptor()}})
			require.NoError(t, err)
			shell.Register(r)
			require.NoError(t, r.ReplayWorkflowHistoryWithOptions(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history, worker.ReplayWorkflowHistoryOptions{
				OriginalExecution: workflow.Execution{ID: begun.GetWorkflowId(), RunID: begun.GetOriginalExecutionRunId()}, // names of children are made of it
			}))
			require.NoError(t, set.Drain(t.Context(), ""))
			require.Empty(t, seen.seen, "what is replayed is not told again")
		})
	}
}
