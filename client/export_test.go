package client

import (
	"testing"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
)

// TwoRefunds is a Temporal server with two runs of a cashier that wait for an approval.
func TwoRefunds() client.Client {
	opened := time.Now().Add(-3 * time.Hour)
	run := func(session, run, text string) *workflowpb.WorkflowExecutionInfo {
		memo := agent.Memo{V: agent.Version, Run: run, Status: agent.StatusSuspended, Suspension: "s-1", Requests: []agent.MemoRequest{
			{ID: "q-1", Type: agent.RequestApproval, Text: text, Tool: "refund", Opened: opened},
		}}
		return execution(new(testing.T), session, run, running, memo, map[string]any{agent.AttrAgent: "cashier", agent.AttrWaitsFor: []string{"input_required", "approval"}})
	}
	all := []*workflowpb.WorkflowExecutionInfo{run("ticket-9/cashier-1", "01b1", "Run refund?"), run("ticket-7/cashier-1", "01a1", "Run refund?")}
	return &fake{list: func(string) []*workflowpb.WorkflowExecutionInfo { return all }}
}
