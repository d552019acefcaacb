package activities

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	sdktest "go.temporal.io/sdk/testsuite"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// liveRun is a server with one run that lives, and a worker that answers for it.
type liveRun struct {
	client.Client
	open signals.OpenTail
	// ahead is what the worker makes of what is behind the run's last task, and then what
	// came of that.
	ahead, then []agent.Event
	length      int64
	// sealed tells that all was stored since the head was read.
	sealed bool
	// closed is the status of a run that has ended; zero for one that lives.
	closed enums.WorkflowExecutionStatus
}

func (l *liveRun) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	info := &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: "live", RunId: "run-1"}, FirstRunId: "run-1", Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING, HistoryLength: l.length,
	}
	if l.closed != 0 {
		info.Status, info.CloseTime = l.closed, timestamppb.Now()
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, nil
}

type openAnswer struct {
	converter.EncodedValue
	open signals.OpenTail
}

func (a openAnswer) Get(into any) error { *into.(*signals.OpenTail) = a.open; return nil }

func (l *liveRun) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	now := l.open
	now.Events = append(now.Events[:len(now.Events):len(now.Events)], l.ahead...)
	if l.ahead != nil {
		l.ahead, l.open.Events = nil, append(l.open.Events, l.then...)
		l.length += 3
	}
	return openAnswer{open: now}, nil
}

// forked is where a fork of the live run begins, behind its first turn, and the log
// that it has. The turn's end, event 4, is not stored. The answers of so many attempts
// are lost.
func (l *liveRun) forked(t *testing.T, stored remembered.Counters, lost int) (LocateResult, []agent.Event) {
	t.Helper()
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	log := store.NewLog(dir)
	l.open.Head, err = log.Seal(t.Context(), "", "live", "run-1", false, []agent.Event{
		{Seq: 1, Type: agent.EventRunStarted, Started: &agent.Started{Run: "run-1", Spec: &agent.Spec{}}},
		{Seq: 2, Type: agent.EventMessage, Message: &agent.Message{Role: agent.RoleUser, Parts: []agent.Part{{Type: agent.PartText, Text: "go"}}}},
		{Seq: 3, Type: agent.EventTurnStarted, Turn: 1},
	})
	require.NoError(t, err)
	require.NoError(t, dir.PutHead(t.Context(), store.Head{V: 1, Version: 1, Session: "live", Run: "run-1", Status: agent.StatusRunning, Digest: l.open.Head, Seq: 3, Counters: stored}))
	if l.sealed {
		last := l.open.Events[len(l.open.Events)-1].Seq
		l.open.Head, err = log.Seal(t.Context(), l.open.Head, "live", "run-1", false, l.open.Events)
		l.open.Events = nil
		require.NoError(t, err)
		require.NoError(t, dir.PutHead(t.Context(), store.Head{V: 1, Version: 2, Session: "live", Run: "run-1", Status: agent.StatusRunning, Digest: l.open.Head, Seq: last, Counters: stored}))
	}
	acts := &Activities{Client: l, Log: log}
	var suite sdktest.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	acts.Register(env)
	in := loop.LocateArgs{Session: "fork", From: &agent.StartFrom{Session: "live", Checkpoint: agent.CheckpointID("live", 4)}, Fence: agent.Fence{Chain: 2, N: 2}}
	for range lost {
		_, err = env.ExecuteActivity(Locate.Name, in)
		require.NoError(t, err)
	}
	v, err := env.ExecuteActivity(Locate.Name, in)
	require.NoError(t, err)
	var out LocateResult
	require.NoError(t, v.Get(&out))
	view, err := log.View(t.Context(), out.Head)
	require.NoError(t, err)
	head, err := dir.Head(t.Context(), "fork")
	require.NoError(t, err)
	require.Equal(t, []any{out.Head, out.Counters}, []any{head.Digest, head.Counters})
	return out, view.Events()
}

var turnEnded = agent.Event{Seq: 4, Type: agent.EventTurnEnded, Turn: 1, Snapshot: &agent.TurnSnapshot{}}

// A fork of a live run counts on from what its log has: also from what the live run
// has not stored, or stored just now (OA-87).
func TestAForkCountsOnFromItsLog(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		l := &liveRun{sealed: sealed, open: signals.OpenTail{Events: []agent.Event{
			turnEnded,
			{Seq: 5, Type: agent.EventRequestOpened, Request: &agent.Request{ID: "q-3", Suspension: "s-2"}},
		}}}
		out, _ := l.forked(t, remembered.Counters{Suspension: 1, Request: 1, Child: 7, Principal: "ana", Grants: []remembered.Grant{{Agent: "a", Tool: "pay", Starter: "ana"}}}, 1)
		require.Equal(t, remembered.Counters{Suspension: 2, Request: 3, Child: 7}, out.Counters)
	}
}

// A worker that answers ahead of the run's next task may tell what never comes to be:
// the log of a fork has none of it.
func TestAForkIsNotAheadOfTheRun(t *testing.T) {
	l := &liveRun{
		open:  signals.OpenTail{Events: []agent.Event{turnEnded}},
		ahead: []agent.Event{{Seq: 5, Type: agent.EventTurnStarted, Turn: 2}},
		then:  []agent.Event{{Seq: 5, Type: agent.EventHoldAdded, Turn: 1, Hold: &agent.Hold{ID: "h-1"}}},
	}
	_, events := l.forked(t, remembered.Counters{}, 0)
	require.Len(t, events, 4)
	require.Equal(t, agent.EventTurnEnded, events[3].Type)
}

// A fork of a session whose events with files are not stored yet waits for its live run. If that run was
// terminated, the error says what stores them.
func TestAForkOfFilesThatAreNotStored(t *testing.T) {
	for _, closed := range []enums.WorkflowExecutionStatus{0, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED} {
		s := newShelf(t)
		shown := agent.Message{Role: agent.RoleUser, Parts: []agent.Part{s.put("a.png", "image/png", picturePNG)}}
		s.d.Client = &liveRun{closed: closed, open: signals.OpenTail{Events: []agent.Event{{Seq: 1, Type: agent.EventMessage, Message: &shown}}}}
		var suite sdktest.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		s.d.Register(env)
		_, err := env.ExecuteActivity(Locate.Name, loop.LocateArgs{Session: "fork", From: &agent.StartFrom{Session: "live"}, Fence: agent.Fence{Chain: 2, N: 2}})
		var failed *temporal.ApplicationError
		require.ErrorAs(t, err, &failed)
		if closed == 0 {
			require.False(t, failed.NonRetryable(), "the run stores them at once")
			continue
		}
		require.True(t, failed.NonRetryable())
		require.Equal(t, string(agent.CodeStale), failed.Type())
		require.ErrorContains(t, err, "start a run in session live first: it stores them")
	}
}

// otherBuild is a server whose worker can't continue with the run.
type otherBuild struct{ liveRun }

func (*otherBuild) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return nil, serviceerror.NewQueryFailed(`[TMPRL1100] Workflow code is too old to support version 2 for "fermata.revision" changeID. The maximum supported version is 1`)
}

// While builds change, a worker of another one may be asked for a live run's log: a fork
// asks again.
func TestAForkWaitsForAWorkerOfTheRunsBuild(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	acts := &Activities{Client: &otherBuild{}, Log: store.NewLog(dir)}
	var suite sdktest.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	acts.Register(env)
	_, err = env.ExecuteActivity(Locate.Name, loop.LocateArgs{Session: "fork", From: &agent.StartFrom{Session: "live"}, Fence: agent.Fence{Chain: 2, N: 2}})
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, string(agent.CodeIncompatible), failed.Type())
	require.False(t, failed.NonRetryable())
}
