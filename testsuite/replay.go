package testsuite

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/worker"
)

// Replay replays recorded histories with the workflow code of this build. It fails the
// test if a history does not fit, or if o lacks the agent, a tool or a model of a run
// that has not ended. o are the worker's options, with its Models and without a Store;
// nil only compares the workflow's commands. A file is the output of `temporal workflow
// show --output json`.
func Replay(t testing.TB, o *worker.Options, files ...string) {
	t.Helper()
	require.NotEmpty(t, files, "there is nothing to replay")
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		// The decoder's own error does not say what the file should be.
		require.True(t, json.Valid(data), "%s is not JSON: record it with temporal workflow show --output json", file)
		h := &historypb.History{}
		// A newer server may have written fields that this build does not know.
		require.NoError(t, temporalproto.CustomJSONUnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, h), file)
		fits(t, h, o)
	}
}

// fits fails the test if a history does not fit.
func fits(t testing.TB, h *historypb.History, o *worker.Options) {
	t.Helper()
	v, err := worker.Replay(h, o)
	require.NoError(t, err)
	if err := v.Err(); err != nil {
		t.Errorf("%v", err)
	}
}

// closeAll replays everything that ran on a task queue, and terminates what is still
// running. So a run that a worker with an empty cache could not continue is found here,
// and not in production.
func closeAll(t testing.TB, c temporal.Client, o *worker.Options) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the test's own context has ended
	defer cancel()
	var page []byte
	for {
		list, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: "TaskQueue = " + signals.Quote(o.TaskQueue) + " AND WorkflowType = " + signals.Quote(signals.WorkflowType), NextPageToken: page,
		})
		require.NoError(t, err)
		for _, info := range list.GetExecutions() {
			// Replayed before it is terminated: the termination is not part of the run.
			h := &historypb.History{}
			events := c.GetWorkflowHistory(ctx, info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
			for events.HasNext() {
				e, err := events.Next()
				require.NoError(t, err)
				h.Events = append(h.Events, e)
			}
			fits(t, h, o)
			if !durable.Closed(info) {
				err := c.TerminateWorkflow(ctx, info.GetExecution().GetWorkflowId(), "", "the test is over")
				var gone *serviceerror.NotFound
				// It may have ended by itself since the listing.
				require.True(t, err == nil || errors.As(err, &gone), "%v", err)
			}
		}
		if page = list.GetNextPageToken(); len(page) == 0 {
			return
		}
	}
}
