package signals

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// StoreRecord says which store the workers of a task queue have.
type StoreRecord struct {
	ID    string // the store's id
	Place string // where the first worker has it, for people; at most 800 bytes
}

// The record is a workflow that never runs: its first task is due in 50 years. So every
// worker of the task queue can read it, wherever the worker runs, the server lets only
// one be made, and it outlives all runs.
//
// The store is in the name of the workflow's own task queue, which no worker polls. A
// payload would be encrypted: a worker with other keys, or with newer ones, could not
// read it.
const (
	storeType  = "fermata.store"
	storeQueue = "fermata/store/" // before the identity, "@" and the place
	storeDelay = 50 * 365 * 24 * time.Hour
	maxPlace   = 800
)

// StoreRecordID returns the id of the workflow that has a task queue's [StoreRecord]. No
// session can have such an id.
func StoreRecordID(taskQueue string) string { return "fermata/store/" + taskQueue }

// ReadStore returns the store that is recorded for a task queue. The error is
// [agent.CodeNotFound] if none is.
func ReadStore(ctx context.Context, c client.Client, taskQueue string) (StoreRecord, error) {
	id := StoreRecordID(taskQueue)
	d, err := c.DescribeWorkflowExecution(ctx, id, "")
	switch {
	case errors.As(err, new(*serviceerror.NotFound)):
		return StoreRecord{}, agent.Errorf(agent.CodeNotFound, "no store is recorded for the task queue %s", taskQueue)
	case err != nil:
		return StoreRecord{}, durable.FromRPC(err)
	case durable.Closed(d.GetWorkflowExecutionInfo()):
		return StoreRecord{}, agent.Errorf(agent.CodeNotFound, "the store that was recorded for the task queue %s is no longer", taskQueue)
	}
	name, ours := strings.CutPrefix(d.GetExecutionConfig().GetTaskQueue().GetName(), storeQueue)
	store, place, _ := strings.Cut(name, "@")
	if !ours || store == "" {
		return StoreRecord{}, agent.Errorf(agent.CodeIncompatible, "the workflow %s does not say which store it records; terminate it, and the next worker records its own", id)
	}
	return StoreRecord{ID: store, Place: place}, nil
}

// RecordStore records a store for a task queue that has none, and returns the recorded
// one. If several workers record at once, the first one counts.
func RecordStore(ctx context.Context, c client.Client, taskQueue string, mine StoreRecord) (StoreRecord, error) {
	r, err := ReadStore(ctx, c, taskQueue)
	if !errors.Is(err, agent.CodeNotFound) {
		return r, err
	}
	_, err = c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: StoreRecordID(taskQueue), TaskQueue: storeQueue + mine.ID + "@" + strings.ToValidUTF8(mine.Place[:min(len(mine.Place), maxPlace)], ""), StartDelay: storeDelay,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, storeType)
	if err != nil {
		return r, durable.FromRPC(err)
	}
	return ReadStore(ctx, c, taskQueue) // another worker may have been first
}

// CheckStore returns [agent.CodeNotSetUp] if two records are not of the same store.
func CheckStore(queue string, recorded, mine StoreRecord) error {
	if recorded.ID == mine.ID {
		return nil
	}
	if recorded.Place == mine.Place {
		return agent.Errorf(agent.CodeNotSetUp, "the store in %s is not the one that the workers of the task queue %s had there: it is empty or was replaced (identity %s, not %s). Restore it, or mount the right one. If it is to replace the other for good, stop all workers and terminate the workflow %s",
			mine.Place, queue, cmp.Or(mine.ID, "none"), recorded.ID, StoreRecordID(queue))
	}
	return agent.Errorf(agent.CodeNotSetUp, "the store in %s is not the one of the task queue %s, which is in %s: the sessions of its workers are not here. Name that one (--store, --data, FERMATA_STORE), or use another task queue. If this one is to replace it for good, stop all workers and terminate the workflow %s",
		mine.Place, queue, recorded.Place, StoreRecordID(queue))
}
