package durable_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

func TestClosed(t *testing.T) {
	for number, name := range enums.WorkflowExecutionStatus_name {
		status := enums.WorkflowExecutionStatus(number)
		lives := status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING || status == enums.WORKFLOW_EXECUTION_STATUS_PAUSED
		require.Equal(t, !lives, durable.Closed(&workflow.WorkflowExecutionInfo{Status: status}), name)
	}
}

func TestClosedStatus(t *testing.T) {
	for name, want := range map[string]agent.Status{
		"Running": "", "Paused": "", "Completed": agent.StatusCompleted, "Canceled": agent.StatusCancelled,
		"Terminated": agent.StatusCancelled, "Failed": agent.StatusFailed, "TimedOut": agent.StatusFailed,
	} {
		status, err := enums.WorkflowExecutionStatusFromString(name)
		require.NoError(t, err)
		require.Equal(t, want, durable.ClosedStatus(&workflow.WorkflowExecutionInfo{Status: status}), name)
	}
}
