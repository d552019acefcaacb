package workflows_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/testsuite"
)

// A model call that ends its worker each time is not made forever: after five workers the
// run is suspended, listings find it, and a resume makes the call again. Between two
// attempts it waits ever longer, so that what was lost with it may be done meanwhile.
func TestAStepThatEndsItsWorkers(t *testing.T) {
	const workers = 5
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done"})) // for the next execution
	b.between = &serverRetries{}
	b.fresh()
	var begun []time.Time
	looked := false
	b.OnActivity(activities.CallModel.Name, mock.Anything, mock.Anything).Return(func(context.Context, activities.ModelInput) (wire.Reply, error) {
		begun = append(begun, b.Now())
		return wire.Reply{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_HEARTBEAT, nil)
	})
	b.after(time.Hour, func() {
		looked = true
		v := b.status(t)
		require.Equal(t, agent.StatusSuspended, v.Status)
		require.Equal(t, agent.SuspensionHeld, v.Suspension.Kind)
		require.Equal(t, string(agent.CodeWorkerLost), v.Suspension.Cause)
		require.Equal(t, agent.CodeWorkerLost, v.Suspension.Holds[0].Code)
		require.Len(t, begun, workers)
		for i := 2; i < workers; i++ {
			require.Greater(t, begun[i].Sub(begun[i-1]), begun[i-1].Sub(begun[i-2]))
		}
		b.signal("resume", `{}`)
	})
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.True(t, looked)
	require.Len(t, b.script.Requests(), 1)
}

// A seal that ends its worker each time is tried forever, since what is not stored can't be
// suspended: five workers in a row, and then ever more seldom. The status says so, and the
// run continues when it is stored.
func TestASealThatEndsItsWorkers(t *testing.T) {
	const workers = 5
	b := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Where to?"}}}}))
	b.between = &serverRetries{}
	b.fresh()
	var begun []time.Time
	b.OnActivity(activities.Seal.Name, mock.Anything, mock.Anything).Return(func(ctx context.Context, in activities.SealInput) (activities.SealResult, error) {
		if activity.GetInfo(ctx).IsLocalActivity {
			return activities.SealResult{}, agent.Errorf(agent.CodeStoreUnavailable, "slow")
		}
		if begun = append(begun, b.Now()); len(begun) <= workers {
			return activities.SealResult{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_HEARTBEAT, nil)
		}
		if len(begun) == workers+1 {
			v := b.status(t)
			require.Equal(t, agent.StatusSuspending, v.Status)
			require.Equal(t, agent.CodeWorkerLost, v.StoreError.Code)
		}
		return activities.SealResult{Head: "stored", Version: in.Version + 1}, nil
	})
	b.after(9*time.Minute, func() {
		v := b.status(t)
		require.Equal(t, agent.StatusSuspended, v.Status)
		require.Nil(t, v.StoreError)
		require.Len(t, begun, workers+1)
		for i := 2; i <= workers; i++ {
			require.Greater(t, begun[i-1].Sub(begun[i-2]), time.Second)
		}
		b.signal("cancel", `{}`)
	})
	require.Equal(t, agent.StatusCancelled, b.run(t, "go").Status)
	require.Len(t, begun, workers+2)
}

// serverRetries makes the test environment leave to the workflow what a server leaves to it:
// the environment itself tries again whenever a heartbeat was lost, also if the retry
// policy names that as an error that is not to be retried.
type serverRetries struct {
	interceptor.WorkerInterceptorBase
}

func (*serverRetries) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &serverRetriesIn{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type serverRetriesIn struct {
	interceptor.WorkflowInboundInterceptorBase
}

func (i *serverRetriesIn) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&serverRetriesOut{interceptor.WorkflowOutboundInterceptorBase{Next: out}})
}

type serverRetriesOut struct {
	interceptor.WorkflowOutboundInterceptorBase
}

func (o *serverRetriesOut) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	if p := workflow.GetActivityOptions(ctx).RetryPolicy; p != nil && slices.Contains(p.NonRetryableErrorTypes, "TemporalTimeout:Heartbeat") {
		ctx = workflow.WithRetryPolicy(ctx, temporal.RetryPolicy{MaximumAttempts: 1})
	}
	return o.Next.ExecuteActivity(ctx, name, args...)
}
