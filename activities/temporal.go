package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// checkEdited checks arguments that an approver has edited, for a call that the workflow itself
// makes.
func (d *Activities) checkEdited(ctx context.Context, in ToolInput) (ToolOutput, error) {
	defer heartbeat(ctx)()
	out := ToolOutput{ToolResult: agent.ToolResult{Call: in.Call, Tool: in.Tool, Status: agent.CallOK}}
	err := d.complete(ctx, &in)
	if errors.Is(err, agent.CodeDenied) {
		out.Status, out.Text, err = agent.CallRejected, err.Error(), nil
	}
	return out, err
}

// AwaitWorkflow waits for a workflow of the user's own that an earlier call with the same
// key has started. A child workflow can't be attached to: whoever starts it again gets an
// error.
var AwaitWorkflow = durable.Activity[AwaitWorkflowInput, agent.ToolResult]{Name: "fermata.await_workflow"}

// AwaitWorkflowInput names the workflow.
type AwaitWorkflowInput struct {
	ID       string             `json:"id"`
	Temporal agent.TemporalCall `json:"temporal"`
	Timeout  agent.Duration     `json:"timeout"`
	// Call and Tool are those of the result.
	Call string `json:"call"`
	Tool string `json:"tool"`
}

// cancelTime is how long the request to cancel a workflow may take.
const cancelTime = 5 * time.Second

func (d *Activities) awaitWorkflow(ctx context.Context, in AwaitWorkflowInput) (agent.ToolResult, error) {
	defer heartbeat(ctx)()
	var out converter.RawValue
	err := d.Client.GetWorkflow(ctx, in.ID, "").Get(ctx, &out)
	switch {
	case stopped(ctx):
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
		defer cancel()
		if bad := d.Client.CancelWorkflow(late, in.ID, ""); bad != nil {
			d.Logger.WarnContext(ctx, "a workflow could not be cancelled", "workflow", in.ID, "call", in.Call, "error", bad)
		}
		return agent.ToolResult{}, ctx.Err()
	case err != nil && !ended(err):
		e := durable.Within("waiting for workflow "+in.ID, durable.FromRPC(err))
		e.Retryable = ctx.Err() != nil || e.Code == agent.CodeUnreachable || e.Code == agent.CodeTimeout // a worker that shuts down leaves it to the next one
		return agent.ToolResult{}, e
	}
	if d.Converter != nil && err == nil && out.Payload() != nil {
		if bad := d.Converter.FromPayload(out.Payload(), &out); bad != nil {
			return agent.ToolResult{}, agent.Errorf(agent.CodeIncompatible, "the result of workflow %s can't be decoded: %w", in.ID, bad)
		}
	}
	r := agent.ToolResult{Call: in.Call, Tool: in.Tool}
	r.Status, r.Text, _ = durable.Called(in.Temporal, time.Duration(in.Timeout), out, err)
	r.Text, r.Size = bound(r.Text)
	return r, nil
}
