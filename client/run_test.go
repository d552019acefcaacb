package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fermata-agents/fermata/agent"
)

// The plain temporal CLI starts a run without a memo. Until a worker takes it, it is pending since its start.
func TestARunWithoutAMemoIsPending(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	require.Equal(t, agent.Memo{Status: agent.StatusPending, Since: start}, ReadMemo(&workflowpb.WorkflowExecutionInfo{StartTime: timestamppb.New(start)}))
	require.Zero(t, ReadMemo(nil))
}
