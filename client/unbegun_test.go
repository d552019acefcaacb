package client

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// Behind a run that never began nothing lacks if the last run that did begin has stored its end, also if
// Temporal has forgotten that run.
func TestWhatLacksBehindARunThatNeverBegan(t *testing.T) {
	ended := store.Head{Run: "r1", Status: agent.StatusCompleted}
	open := store.Head{Run: "r1", Status: agent.StatusRunning}
	listed := func(run string, status agent.Status) *workflowpb.WorkflowExecutionInfo {
		return execution(t, "a", run, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, agent.Memo{V: 1, Run: run, Status: status}, nil)
	}
	last, unbegun := listed("r3", agent.StatusPending), listed("r2", agent.StatusPending)
	for name, c := range map[string]struct {
		head   store.Head
		before []*workflowpb.WorkflowExecutionInfo
		lacks  bool
	}{
		"the only run":                     {},
		"after one that stored its end":    {head: ended, before: []*workflowpb.WorkflowExecutionInfo{listed("r1", agent.StatusCompleted)}},
		"after one that is forgotten":      {head: ended},
		"after another that never began":   {head: ended, before: []*workflowpb.WorkflowExecutionInfo{unbegun, listed("r1", agent.StatusCompleted)}},
		"after one that stored nothing":    {before: []*workflowpb.WorkflowExecutionInfo{listed("r1", agent.StatusRunning)}, lacks: true},
		"after one that stored no end":     {head: open, before: []*workflowpb.WorkflowExecutionInfo{listed("r1", agent.StatusRunning)}, lacks: true},
		"the same, and it is forgotten":    {head: open, lacks: true},
		"after one later than what stands": {head: ended, before: []*workflowpb.WorkflowExecutionInfo{listed("r2", agent.StatusRunning), listed("r1", agent.StatusCompleted)}, lacks: true},
	} {
		f := &fake{list: func(string) []*workflowpb.WorkflowExecutionInfo {
			return append([]*workflowpb.WorkflowExecutionInfo{last}, c.before...)
		}}
		err := (&reader{client: New(f, nil), session: "a"}).missesNothing(t.Context(), c.head, last)
		if c.lacks {
			require.ErrorIs(t, err, agent.CodeNoWorker, name)
		} else {
			require.NoError(t, err, name)
		}
	}
}
