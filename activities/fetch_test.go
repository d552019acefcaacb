package activities

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
)

// endedChild is a client of a server whose one run has ended.
type endedChild struct {
	client.Client
	outcome agent.Outcome
}

func (endedChild) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		FirstRunId: "c", Status: enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, Execution: &common.WorkflowExecution{RunId: "c"},
	}}, nil
}

func (c endedChild) GetWorkflow(context.Context, string, string) client.WorkflowRun {
	return endedRun{outcome: c.outcome}
}

type endedRun struct {
	client.WorkflowRun
	outcome agent.Outcome
}

func (r endedRun) Get(_ context.Context, v any) error {
	*v.(*agent.Outcome) = r.outcome
	return nil
}

// The end of a child that Temporal does not deliver by itself is the same as one that it delivers: with
// the whole answer and the artifacts. Whether it has ended is asked without these.
func TestTheOutcomeOfAChildIsFetchedWhole(t *testing.T) {
	file := agent.File{Session: "s/b-1", Name: "a.md", MediaType: "text/plain", Size: 1, Digest: strings.Repeat("0", 64)}
	o := agent.Outcome{
		Status: agent.StatusCompleted, Text: strings.Repeat("word ", 2000), Output: json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`),
		Artifacts: []agent.Artifact{{File: file, Version: 1, Run: "c", Agent: "b", Call: "t1.1"}}, ArtifactsLeft: 2, Files: []agent.File{file},
	}
	d := &Activities{Client: endedChild{outcome: o}}
	got, err := d.fetch(t.Context(), FetchInput{Session: "s/b-1", Run: "c", Ending: true})
	require.NoError(t, err)
	require.Equal(t, o.Text, got.Text)
	require.Equal(t, o.Output, got.Output)
	require.Equal(t, o.Artifacts, got.Artifacts)
	require.Equal(t, 2, got.ArtifactsLeft)
	require.Equal(t, o.Files, got.Files)

	got, err = d.fetch(t.Context(), FetchInput{Session: "s/b-1", Run: "c"})
	require.NoError(t, err)
	require.Equal(t, &agent.Outcome{V: agent.Version, Type: "outcome", Session: "s/b-1", Run: "c", Status: agent.StatusCompleted}, got)
}
