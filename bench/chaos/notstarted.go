package main

import (
	"bytes"
	"context"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/fermata-agents/fermata/signals"
)

// unbegun reports whether a message started a run that was ended from outside before its
// log began. Then only that run's input has the message.
func (a *audit) unbegun(ctx context.Context, p post) bool {
	page, err := a.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: "WorkflowId = " + signals.Quote(p.session) + " AND ExecutionStatus IN ('Canceled', 'Terminated')",
	})
	if err != nil {
		a.report.find(wrong, p.session, "", "its runs can't be listed: %v", err)
		return false
	}
	for _, info := range page.GetExecutions() {
		if !a.began(p.session, info.GetExecution().GetRunId()) && a.beganWith(ctx, info, p.id) {
			return true
		}
	}
	return false
}

// began reports whether a run has a log.
func (a *audit) began(session, run string) bool {
	for _, l := range a.logsOf(session) {
		if l.runs[run] {
			return true
		}
	}
	return false
}

// beganWith reports whether a message with an id started a run.
func (a *audit) beganWith(ctx context.Context, info *workflow.WorkflowExecutionInfo, id string) bool {
	at := info.GetExecution()
	first, err := a.temporal.GetWorkflowHistory(ctx, at.GetWorkflowId(), at.GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT).Next()
	if err != nil {
		return false
	}
	for _, in := range first.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads() {
		if bytes.Contains(in.GetData(), []byte(`"id":"`+id+`"`)) {
			return true
		}
	}
	return false
}
