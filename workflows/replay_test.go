package workflows_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/workflows"
)

// Histories of every shape that was ever released are replayed: a change of the
// machine or of its shell that breaks one needs a version gate. They are recorded
// by e2e, with -record.
func TestRecordedHistoriesReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/history/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			shell := &workflows.Shell{Tails: activities.NewTails(), Flights: activities.NewFlights()}
			r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{Interceptors: []interceptor.WorkerInterceptor{shell.Interceptor()}})
			require.NoError(t, err)
			shell.Register(r)
			require.NoError(t, r.ReplayWorkflowHistoryFromJSONFile(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), path))
		})
	}
}
