package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fermata-agents/fermata/agent"
)

// The plain temporal CLI starts a run without a memo. Until a worker takes it, it is pending since its start.
func TestARunWithoutAMemoIsPending(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	require.Equal(t, agent.Memo{Status: agent.StatusPending, Since: start}, ReadMemo(&workflowpb.WorkflowExecutionInfo{StartTime: timestamppb.New(start)}))
	require.Zero(t, ReadMemo(nil))
	sealed := &commonpb.Memo{Fields: map[string]*commonpb.Payload{agent.MemoKey: {Metadata: map[string][]byte{"encoding": []byte("binary/encrypted")}, Data: []byte("x")}}}
	require.Zero(t, ReadMemo(&workflowpb.WorkflowExecutionInfo{StartTime: timestamppb.New(start), Memo: sealed}), "it is not known whether it has begun")
}
