package activities

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/testsuite"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/store"
)

// past is what Temporal knows of executions, by their ids.
type past struct {
	client.Client // nil: nothing else is asked
	status        map[string]enums.WorkflowExecutionStatus
	next          map[string]string // of those that were carried over
	unsaved       map[string]bool   // those whose outcome says that the store does not have their end
	down          bool
}

func (p *past) GetWorkflow(_ context.Context, _, execution string) client.WorkflowRun {
	return &end{unsaved: p.unsaved[execution]}
}

// end is how an execution has ended.
type end struct {
	client.WorkflowRun // nil: nothing else is asked
	unsaved            bool
}

func (e *end) Get(_ context.Context, out any) error {
	if e.unsaved {
		out.(*agent.Outcome).Unsaved = &agent.Error{Code: agent.CodeDenied}
	}
	return nil
}

func (p *past) DescribeWorkflowExecution(_ context.Context, _, execution string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if p.down {
		return nil, serviceerror.NewUnavailable("down")
	}
	status, ok := p.status[execution]
	if !ok {
		return nil, serviceerror.NewNotFound("gone")
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: status}}, nil
}

func (p *past) GetWorkflowHistory(_ context.Context, _, execution string, _ bool, _ enums.HistoryEventFilterType) client.HistoryEventIterator {
	return &last{next: p.next[execution]}
}

// last is the last event of an execution that was carried over.
type last struct {
	next string
	told bool
}

func (l *last) HasNext() bool { return !l.told }

func (l *last) Next() (*historypb.HistoryEvent, error) {
	l.told = true
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{
		WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{NewExecutionRunId: l.next},
	}}, nil
}

const (
	completed  = enums.WORKFLOW_EXECUTION_STATUS_COMPLETED
	terminated = enums.WORKFLOW_EXECUTION_STATUS_TERMINATED
	timedOut   = enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT
	running    = enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	carried    = enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
)

// What was ended from outside, and what could not store its end, is found among the runs that have started, in the execution
// that it was carried over into, the latest first.
func TestWhatWasCutOffIsFound(t *testing.T) {
	p := &past{
		status:  map[string]enums.WorkflowExecutionStatus{"a": terminated, "b": completed, "c": carried, "c2": carried, "c3": timedOut, "d": running, "r": carried, "r2": terminated, "e": carried, "e2": completed, "u": completed, "v": carried, "v2": completed},
		next:    map[string]string{"c": "c2", "c2": "c3", "r": "r2", "e": "e2", "v": "v2"},
		unsaved: map[string]bool{"u": true, "v2": true},
	}
	for name, c := range map[string]struct {
		head store.Head
		want []string
		lost string
	}{
		"a session's first run":            {},
		"claims, the latest first":         {head: store.Head{Claims: []string{"a", "b", "c", "d"}}, want: []string{"c3", "a"}},
		"claims that Temporal has lost":    {head: store.Head{Claims: []string{"x", "a"}}, want: []string{"a"}},
		"a claim whose end is not stored":  {head: store.Head{Claims: []string{"a", "u", "b"}}, want: []string{"u", "a"}},
		"the head's run, not stored":       {head: store.Head{Run: "v", Status: agent.StatusRunning}, want: []string{"v2"}},
		"the head's own run":               {head: store.Head{Run: "r", Status: agent.StatusRunning}, want: []string{"r2"}},
		"by the execution that wrote it":   {head: store.Head{Run: "r", Execution: "r2", Status: agent.StatusSuspended}, want: []string{"r2"}},
		"once, where it claims too":        {head: store.Head{Run: "r", Status: agent.StatusRunning, Claims: []string{"r"}}, want: []string{"r2"}},
		"not, where it came to its end":    {head: store.Head{Run: "r", Status: agent.StatusCompleted}},
		"not, where Temporal knows an end": {head: store.Head{Run: "e", Status: agent.StatusRunning}},
		"lost with Temporal's memory":      {head: store.Head{Run: "x", Status: agent.StatusRunning}, lost: "run x did not come to its end, and Temporal knows nothing of it any more"},
	} {
		t.Run(name, func(t *testing.T) {
			got, lost, err := (&Activities{Client: p}).terminatedRuns(t.Context(), c.head, "s")
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Equal(t, c.lost, lost)
		})
	}
	_, _, err := (&Activities{Client: &past{down: true}}).terminatedRuns(t.Context(), store.Head{Claims: []string{"a"}}, "s")
	require.ErrorIs(t, err, agent.CodeUnreachable, "a server that is down has not forgotten")
}

// inActivity does something as a step of an execution.
func inActivity(t *testing.T, do func(ctx context.Context) error) error {
	t.Helper()
	var suite sdk.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: "do"})
	_, err := env.ExecuteActivity("do")
	return err
}

// A run says in the head that it has started, beside those of before that were cut off;
// said twice it stands there once, and where the head has moved it looks again.
func TestARunClaimsItsSession(t *testing.T) {
	s, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	p := &past{status: map[string]enums.WorkflowExecutionStatus{}}
	d := &Activities{Client: p, Log: store.NewLog(s), InFlight: NewInFlight()}
	before := store.Head{V: agent.Version, Version: 1, Session: "s", Fence: agent.Fence{Chain: time.Now().Add(time.Hour).UnixMicro(), N: 9}, Updated: time.Now().UTC()}
	for i := range maxClaims + 5 {
		id := fmt.Sprintf("e%02d", i)
		p.status[id] = terminated
		before.Claims = append(before.Claims, id)
	}
	require.NoError(t, s.PutHead(t.Context(), before))
	var own string
	for range 2 { // the answer of the first was lost
		require.NoError(t, inActivity(t, func(ctx context.Context) error {
			own = activity.GetInfo(ctx).WorkflowExecution.RunID
			head, err := s.Head(ctx, "s")
			require.NoError(t, err)
			out := &Claimed{}
			err = d.claim(ctx, OpenInput{OpenArgs: loop.OpenArgs{Session: "s"}}, head, out)
			require.Equal(t, []any{before.Fence.Chain + 1, int64(1)}, []any{out.Fence.Chain, out.Fence.N})
			return err
		}))
	}
	head, err := s.Head(t.Context(), "s")
	require.NoError(t, err)
	require.EqualValues(t, 2, head.Version)
	require.Len(t, head.Claims, maxClaims+1)
	require.Equal(t, []string{"e05", "e24", own}, []string{head.Claims[0], head.Claims[maxClaims-1], head.Claims[maxClaims]})

	late := head
	late.Version, late.Claims, late.Fence.By = 3, nil, "a late write of before"
	require.NoError(t, s.PutHead(t.Context(), late))
	require.NoError(t, inActivity(t, func(ctx context.Context) error {
		err := d.claim(ctx, OpenInput{OpenArgs: loop.OpenArgs{Session: "s"}}, before, &Claimed{}) // what it read is old by now
		var stale *agent.Error
		require.ErrorAs(t, err, &stale)
		require.Equal(t, []any{agent.CodeStale, true}, []any{stale.Code, stale.Retryable})
		return nil
	}))
}
