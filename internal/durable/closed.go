package durable

import (
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
)

// Closed reports whether an execution has ended. An execution that Temporal itself has
// paused (`temporal workflow pause`) has not.
func Closed(info *workflow.WorkflowExecutionInfo) bool {
	switch info.GetStatus() {
	case enums.WORKFLOW_EXECUTION_STATUS_RUNNING, enums.WORKFLOW_EXECUTION_STATUS_PAUSED:
		return false
	}
	return true
}

// ClosedStatus returns how a run ended, as far as Temporal knows; empty if its execution
// has not ended.
func ClosedStatus(info *workflow.WorkflowExecutionInfo) agent.Status {
	if !Closed(info) {
		return ""
	}
	switch info.GetStatus() {
	case enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return agent.StatusCompleted
	case enums.WORKFLOW_EXECUTION_STATUS_CANCELED, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return agent.StatusCancelled
	}
	return agent.StatusFailed
}
