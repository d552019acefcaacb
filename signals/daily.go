package signals

import (
	"cmp"
	"context"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/wire"
)

// A task queue's account of daily limits is a workflow of DailyType. Workers send it the
// update DailyClaim.
const (
	DailyType  = "fermata.daily"
	DailyClaim = "claim"
)

// DailyID returns the id of the workflow with a task queue's account. No session can have
// such an id.
func DailyID(taskQueue string) string { return "fermata/daily/" + taskQueue }

// DecodeDailyClaim decodes a claim strictly. Its errors are [agent.CodeInvalidInput] and
// [agent.CodeTooLarge], with the path of the field.
func DecodeDailyClaim(data []byte) (wire.DailyClaim, *agent.Error) {
	var c wire.DailyClaim
	err := durable.Decode(data, &c, agent.MaxPayload)
	if err == nil {
		err = c.Limits.Check()
	}
	if err == nil && len(c.ID) > agent.MaxIDLength {
		err = agent.Errorf(agent.CodeInvalidInput, "id has %d bytes, and may have %d", len(c.ID), agent.MaxIDLength).WithPath("id")
	}
	return c, durable.Within("claim refused", err)
}

// ClaimDaily claims a part of a task queue's daily limits. It starts the account if there
// is none. The server needs a worker on the task queue. A claim that is repeated with its
// ID is granted once.
func ClaimDaily(ctx context.Context, c client.Client, taskQueue string, claim wire.DailyClaim) (grant wire.DailyGrant, err error) {
	o := client.StartWorkflowOptions{
		ID: DailyID(taskQueue), TaskQueue: taskQueue, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}
	h, err := c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: c.NewWithStartWorkflowOperation(o, DailyType),
		UpdateOptions: client.UpdateWorkflowOptions{
			// The claim's id as the update's id: the server answers a repeated claim with
			// the first grant.
			UpdateID: cmp.Or(claim.ID, freshUpdate()), UpdateName: DailyClaim, Args: []any{claim}, WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err == nil {
		err = h.Get(ctx, &grant)
	}
	return grant, durable.FromRPC(err)
}
