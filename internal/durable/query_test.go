package durable

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
)

// A question that a server or a worker cancelled as it stopped is asked again: the
// step that asked does not fail for good.
func TestCancelledByAServerIsTriedAgain(t *testing.T) {
	err := ArriveRPC(serviceerror.NewCanceled("context canceled"))
	require.ErrorIs(t, err, agent.Unreachable)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, depart(fmt.Errorf("asking: %w", err)), &failed)
	require.False(t, failed.NonRetryable())
}
