package worker_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/worker"
)

// visibility counts how often it is asked, and lacks an attribute.
type visibility struct {
	client.Client
	lacks string
	asked int
}

func (v *visibility) CountWorkflow(_ context.Context, r *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	v.asked++
	if v.lacks != "" && strings.Contains(r.Query, v.lacks) {
		return nil, serviceerror.NewInvalidArgument("no attribute " + v.lacks)
	}
	return &workflowservice.CountWorkflowExecutionsResponse{}, nil
}

// Temporal lets through ten listings a second and namespace by default: a worker that
// starts asks once.
func TestAttributesAreAskedForOnce(t *testing.T) {
	complete := &visibility{}
	missing, err := worker.MissingAttributes(t.Context(), complete)
	require.NoError(t, err)
	require.Empty(t, missing)
	require.Equal(t, 1, complete.asked)

	missing, err = worker.MissingAttributes(t.Context(), &visibility{lacks: "FermataSince"})
	require.NoError(t, err)
	require.Equal(t, []string{"FermataSince"}, missing)
}

// A server that is too busy to be looked at is waited for, and one that refuses is not.
func TestABusyServerIsWaitedFor(t *testing.T) {
	looks := 0
	require.NoError(t, worker.Patiently(t.Context(), func(context.Context) error {
		if looks++; looks < 3 {
			return agent.Errorf(agent.CodeTimeout, "busy")
		}
		return nil
	}))
	require.Equal(t, 3, looks)

	looks = 0
	require.ErrorIs(t, worker.Patiently(t.Context(), func(context.Context) error {
		looks++
		return agent.Errorf(agent.CodeNotSetUp, "no")
	}), agent.CodeNotSetUp)
	require.Equal(t, 1, looks)

	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, worker.Patiently(over, func(context.Context) error { return agent.Errorf(agent.CodeTimeout, "busy") }), agent.CodeTimeout)
}

// awayStore is a store whose server is away.
type awayStore struct{ store.Store }

func (awayStore) Heads(context.Context, string) iter.Seq2[store.Head, error] {
	return func(yield func(store.Head, error) bool) {
		yield(store.Head{}, agent.Errorf(agent.CodeStoreUnavailable, "listing the sessions: connection refused"))
	}
}

// A store that does not answer keeps no worker from starting, and the worker says so.
func TestAStoreThatIsAwayIsToldOf(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	require.NoError(t, worker.CheckKeys(t.Context(), awayStore{}, zap.New(core)))
	require.Len(t, logged.FilterMessageSnippet("the store does not answer").All(), 1)
}
