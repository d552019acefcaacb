package durable

import (
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
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
