package activities

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// families is a server that knows one parent, and counts who asks for it.
type families struct {
	client.Client
	mu     sync.Mutex
	asked  int
	status enums.WorkflowExecutionStatus
	away   bool
}

func (f *families) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.away {
		return nil, serviceerror.NewUnavailable("away")
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: f.status, FirstRunId: "p1"}}, nil
}

func (f *families) now(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// Steps of a hundred children of one parent look at it together, once a minute, and all
// of them end when it is gone.
func TestChildrenLookAtTheirParentTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const children = 100
		server := &families{status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING}
		d := &Activities{Client: server, InFlight: NewInFlight(), ParentChecks: NewParentChecks()}
		var steps []context.Context
		for n := range children {
			ctx, leave := d.begin(t.Context(), "a/scout", nil, &wire.Parent{Session: "a", Run: "p1", Call: string(rune('a' + n))})
			defer leave()
			steps = append(steps, ctx)
		}
		server.now(func() { require.Equal(t, 1, server.asked) })
		time.Sleep(10*time.Minute + parentCheckInterval) // of fake time
		synctest.Wait()
		server.now(func() {
			require.LessOrEqual(t, server.asked, 11)
			server.away = true
		})
		time.Sleep(2 * parentCheckAge)
		for _, ctx := range steps {
			require.NoError(t, ctx.Err(), "nobody can tell")
		}
		server.now(func() {
			server.away, server.status, server.asked = false, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, 0
		})
		time.Sleep(parentCheckAge + parentCheckInterval)
		synctest.Wait()
		for _, ctx := range steps {
			require.Equal(t, agent.VerbCancel, heldBy(ctx).Verb)
		}
		server.now(func() { require.Equal(t, 1, server.asked) })
		ctx, leave := d.begin(t.Context(), "a/scout", nil, &wire.Parent{Session: "a", Run: "p1"})
		defer leave()
		require.NotNil(t, heldBy(ctx), "what is gone does not come back, and is not asked for")
		server.now(func() { require.Equal(t, 1, server.asked) })
	})
}
