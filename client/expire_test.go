package client

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// A run that was terminated never stored its end. Its session is kept as long after that as any
// other (HX-67).
func TestTheSessionOfATerminatedRunIsNotKeptForever(t *testing.T) {
	const month = 720 * time.Hour
	execution := func(status enums.WorkflowExecutionStatus, end *timestamppb.Timestamp) *workflowpb.WorkflowExecutionInfo {
		return &workflowpb.WorkflowExecutionInfo{Type: &commonpb.WorkflowType{Name: signals.WorkflowType}, Status: status, CloseTime: end}
	}
	for name, c := range map[string]struct {
		info  *workflowpb.WorkflowExecutionInfo
		err   error
		after time.Time
	}{
		"live":       {info: execution(enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil)},
		"terminated": {execution(enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, timestamppb.New(start.Add(time.Hour))), nil, start.Add(time.Hour + month)},
		"forgotten":  {nil, serviceerror.NewNotFound("no such workflow"), start.Add(month)},
		"unknown":    {err: errors.New("no answer")},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := store.OpenDir(t.TempDir(), nil)
			require.NoError(t, err)
			require.NoError(t, d.PutHead(t.Context(), store.Head{
				V: store.HeadVersion, Version: 1, Session: "s", Run: "r", Status: agent.StatusRunning, Retention: agent.Duration(month), Updated: start,
			}))
			after, err := New(&fake{describe: func(string, string) (*workflowpb.WorkflowExecutionInfo, error) { return c.info, c.err }}, &Options{Store: d}).DeleteAfter(t.Context(), "s")
			require.Equal(t, name == "unknown", err != nil, "%v", err)
			require.Equal(t, c.after, after)
		})
	}
}
