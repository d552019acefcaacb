package activities

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/store"
)

// recorded is a server that has the store of a queue, and tells it when it is let.
type recorded struct {
	client.Client
	id    string
	asked chan struct{}
	tell  chan struct{}
}

func (r *recorded) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	r.asked <- struct{}{}
	<-r.tell
	return &workflowservice.DescribeWorkflowExecutionResponse{
		ExecutionConfig:       &workflowpb.WorkflowExecutionConfig{TaskQueue: &taskqueuepb.TaskQueue{Name: "fermata/store/" + r.id + "@here"}},
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING},
	}, nil
}

// Runs that begin together look once which store the queue has. Who can't wait for that goes
// without, and leaves the look to the others.
func TestRunsThatBeginTogetherShareALook(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	id, err := dir.ID(t.Context())
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		server := &recorded{id: id, asked: make(chan struct{}, 1000), tell: make(chan struct{})}
		i := &Identity{Client: server, Store: dir, Queue: "q"}
		gone, leave := context.WithCancel(t.Context())
		errs := make(chan error, 1000)
		go func() { errs <- i.soon(gone) }()
		synctest.Wait()
		for range 999 {
			go func() { errs <- i.soon(t.Context()) }()
		}
		synctest.Wait()
		leave()
		require.Error(t, <-errs)
		close(server.tell)
		for range 999 {
			require.NoError(t, <-errs)
		}
		require.NoError(t, i.soon(t.Context()))
		require.Len(t, server.asked, 1)
	})
}
