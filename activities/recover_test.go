package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
)

// The end of a run that was terminated is decided as this build decides what it begins, at
// the time at which the server closed the run.
func TestTheMomentOfAnEndFromOutside(t *testing.T) {
	at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	info := &workflowpb.WorkflowExecutionInfo{Status: enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, CloseTime: timestamppb.New(at)}
	require.Equal(t, loop.Moment{At: at, Revision: loop.Revision}, momentOf(info))
	require.Equal(t, agent.ReasonTimedOut, cutOf(info).Reason)
}
