package client

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// chunk is a name that a chunk of session "s" may have.
var chunk = store.ChunkPrefix("s") + "-" + strings.Repeat("0", 64)

// An end that is stored is told when Temporal knows of it: it was stored within the
// last task, which may still be lost.
func TestAnEndIsToldWhenItIsSettled(t *testing.T) {
	ended := store.Head{V: agent.Version, Version: 1, Session: "s", Run: "r", Execution: "e", Status: agent.StatusCompleted, Digest: chunk}
	for name, c := range map[string]struct {
		status   enums.WorkflowExecutionStatus // of the execution; none where Temporal has forgotten it
		err      error
		want     agent.Code
		head     store.Head
		describe bool // whether Temporal has to be asked
	}{
		"of a closed execution":      {status: enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, head: ended, describe: true},
		"of one that still runs":     {status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING, head: ended, want: agent.CodeNotFound, describe: true},
		"of one that is forgotten":   {err: serviceerror.NewNotFound("gone"), head: ended, describe: true},
		"of a server that is away":   {err: serviceerror.NewUnavailable("down"), head: ended, want: agent.CodeUnreachable, describe: true},
		"no end, so that none waits": {head: store.Head{V: agent.Version, Version: 1, Session: "s", Run: "r", Status: agent.StatusSuspended, Digest: chunk}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := store.OpenDir(t.TempDir(), nil)
			require.NoError(t, err)
			require.NoError(t, s.PutHead(t.Context(), c.head))
			asked := ""
			cl := New(&fake{describe: func(_, execution string) (*workflowpb.WorkflowExecutionInfo, error) {
				asked = execution
				return &workflowpb.WorkflowExecutionInfo{Status: c.status}, c.err
			}}, &Options{Store: s})
			head, err := cl.settledHead(t.Context(), "s")
			require.Equal(t, c.describe, asked == "e")
			if c.want != "" {
				require.ErrorIs(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.head.Status, head.Status)
		})
	}
}

// A head that moves while it is looked at is looked at again.
func TestAnEndThatWasTakenBack(t *testing.T) {
	s, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	head := store.Head{V: agent.Version, Version: 1, Session: "s", Run: "r", Execution: "e", Status: agent.StatusCompleted, Digest: chunk}
	require.NoError(t, s.PutHead(t.Context(), head))
	cl := New(&fake{describe: func(string, string) (*workflowpb.WorkflowExecutionInfo, error) {
		head.Version, head.Status, head.Digest = 2, agent.StatusSuspended, store.ChunkPrefix("s")+"-"+strings.Repeat("1", 64) // the task was lost, and done in another way
		require.NoError(t, s.PutHead(t.Context(), head))
		return &workflowpb.WorkflowExecutionInfo{Status: enums.WORKFLOW_EXECUTION_STATUS_COMPLETED}, nil
	}}, &Options{Store: s})
	got, err := cl.settledHead(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, agent.StatusSuspended, got.Status)
}
