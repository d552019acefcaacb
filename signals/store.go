package signals

import (
	"context"
	"errors"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// StoreRecord says which store the workers of a task queue have.
type StoreRecord struct {
	V     int    `json:"v"`
	ID    string `json:"id"`    // the store's identity
	Place string `json:"place"` // where the first worker has it, for people
}

// The record is the memo of a workflow that nobody works on: its first task is due after
// longer than anything lives. So every worker of the task queue sees it wherever it runs,
// the server lets only one be made, and it outlives all runs.
const (
	storeType  = "fermata.store"
	storeMemo  = "store"
	storeQueue = "fermata/store"
	storeDelay = 50 * 365 * 24 * time.Hour
)

// StoreRecordID is the id of the workflow that has a task queue's [StoreRecord]. No
// session has such a name.
func StoreRecordID(taskQueue string) string { return "fermata/store/" + taskQueue }

// ReadStore returns the store that is recorded for a task queue, or [agent.NotFound].
func ReadStore(ctx context.Context, c client.Client, taskQueue string) (StoreRecord, error) {
	id := StoreRecordID(taskQueue)
	d, err := c.DescribeWorkflowExecution(ctx, id, "")
	switch {
	case errors.As(err, new(*serviceerror.NotFound)):
		return StoreRecord{}, agent.Errorf(agent.NotFound, "no store is recorded for the task queue %s", taskQueue)
	case err != nil:
		return StoreRecord{}, durable.ArriveRPC(err)
	case d.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return StoreRecord{}, agent.Errorf(agent.NotFound, "the store that was recorded for the task queue %s is no longer", taskQueue)
	}
	return storeIn(id, d.GetWorkflowExecutionInfo().GetMemo())
}

func storeIn(id string, memo *commonpb.Memo) (r StoreRecord, err error) {
	if err := converter.GetDefaultDataConverter().FromPayload(memo.GetFields()[storeMemo], &r); err != nil || r.ID == "" {
		return r, agent.Errorf(agent.Incompatible, "the workflow %s does not say which store it records (%v); terminate it, and the next worker records its own", id, err)
	}
	return r, nil
}

// RecordStore records a store for a task queue that has none, and returns the one that is
// recorded: of many that record at once the first one counts.
func RecordStore(ctx context.Context, c client.Client, taskQueue string, mine StoreRecord) (StoreRecord, error) {
	r, err := ReadStore(ctx, c, taskQueue)
	if !errors.Is(err, agent.NotFound) {
		return r, err
	}
	mine.V = agent.Version
	_, err = c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: StoreRecordID(taskQueue), TaskQueue: storeQueue, StartDelay: storeDelay, Memo: map[string]any{storeMemo: mine},
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "the store of the task queue " + taskQueue,
	}, storeType)
	if err != nil {
		return r, durable.ArriveRPC(err)
	}
	return ReadStore(ctx, c, taskQueue) // another one may have been first
}
