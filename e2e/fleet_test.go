package e2e

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// listings reports whether a request counts towards the listings that a namespace allows.
func listings(method string) bool {
	return strings.HasPrefix(method, "List") || strings.HasPrefix(method, "Count") || strings.HasPrefix(method, "Scan")
}

// joins starts one more worker of the stage, which logs to a core.
func (s *stage) joins(ctx context.Context, t *testing.T, log *zap.Logger) error {
	t.Helper()
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Store: s.store, Logger: log, Temporal: stopsSoon,
		Agents: []agent.Definition{{Name: "tester", Model: "script"}}, Models: map[string]model.Model{"script": testsuite.NewScript(testsuite.Reply{Text: "done"})},
	})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return w.Start(ctx)
}

// A namespace allows ten listings a second: of a fleet that starts anew, no worker lists
// anything.
func TestAFleetStartsWithoutAListing(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	var listed atomic.Int64
	require.NoError(t, s.joins(t.Context(), t, zap.NewNop()))
	s.temporal = dialHearing(t, shared(t), func(method string, _ any) error {
		if listings(method) {
			listed.Add(1)
		}
		return nil
	})
	for range 10 {
		require.NoError(t, s.joins(t.Context(), t, zap.NewNop()))
	}
	require.Zero(t, listed.Load())
	run, o := s.run(t, "go", nil)
	require.Equal(t, agent.StatusCompleted, o.Status, run.Session)
}

// A server that is too busy for a listing is no reason not to start: the worker says what
// it could not see.
func TestAWorkerStartsThoughNothingCanBeListed(t *testing.T) {
	t.Parallel()
	s := on(t, devserver.ForPackage(t))
	s.temporal = dialHearing(t, devserver.ForPackage(t), func(method string, in any) error {
		start, _ := in.(*workflowservice.StartWorkflowExecutionRequest)
		if listings(method) || start.GetWorkflowType().GetName() == signals.ProcessType {
			return serviceerror.NewResourceExhausted(enums.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "namespace rate limit exceeded")
		}
		return nil
	})
	core, said := observer.New(zap.WarnLevel)
	require.NoError(t, s.joins(t.Context(), t, zap.New(core)))
	require.NotEmpty(t, said.FilterMessageSnippet("search attributes").All())
	_, o := s.run(t, "go", nil)
	require.Equal(t, agent.StatusCompleted, o.Status)
}
