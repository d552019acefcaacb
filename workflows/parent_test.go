package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"
)

// Another namespace may have a session of the parent's name. A replayer does not know the namespace.
func TestAParentOfAnotherNamespaceIsNone(t *testing.T) {
	parent := &workflow.Execution{ID: "s", RunID: "r"}
	require.Empty(t, parentSession(&workflow.Info{Namespace: "a", ParentWorkflowNamespace: "a"}))
	require.Equal(t, "s", parentSession(&workflow.Info{Namespace: "a", ParentWorkflowNamespace: "a", ParentWorkflowExecution: parent}))
	require.Equal(t, "s", parentSession(&workflow.Info{Namespace: "ReplayNamespace", ParentWorkflowNamespace: "a", ParentWorkflowExecution: parent}))
	require.Empty(t, parentSession(&workflow.Info{Namespace: "a", ParentWorkflowNamespace: "b", ParentWorkflowExecution: parent}))
}
