package durable

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
)

// An update that met a worker of another build was not taken, and can be said again.
func TestAWorkerThatCantGoOnIsNone(t *testing.T) {
	err := FromRPC(serviceerror.NewWorkflowNotReady("Unable to perform workflow execution update due to unexpected workflow task failure."))
	require.ErrorIs(t, err, agent.CodeNoWorker)
	require.ErrorContains(t, err, "try again, a verb with the same id")
}

// A question that a server or a worker cancelled as it stopped is asked again: the
// step that asked does not fail for good.
func TestCancelledByAServerIsTriedAgain(t *testing.T) {
	err := FromRPC(serviceerror.NewCanceled("context canceled"))
	require.ErrorIs(t, err, agent.CodeUnreachable)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, toTemporal(fmt.Errorf("asking: %w", err)), &failed)
	require.False(t, failed.NonRetryable())
}
