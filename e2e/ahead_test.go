package e2e

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/worker"
)

// meeting is a connection on which the first query meets what happens meanwhile: the server has given
// it to the worker, and reads the history for it only then. No workflow task overtakes that query.
type meeting struct {
	temporal  sdk.Client // another connection
	meanwhile func()
	once      sync.Once
	answered  chan struct{}
}

func (m *meeting) carry(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	err := call(ctx, method, in, out, conn, o...)
	if _, ok := in.(*workflowservice.RespondQueryTaskCompletedRequest); ok {
		m.once.Do(func() { close(m.answered) })
	}
	task, ok := out.(*workflowservice.PollWorkflowTaskQueueResponse)
	switch {
	case err != nil || !ok || len(task.GetTaskToken()) == 0:
	case task.Query == nil:
		<-m.answered
	case m.meanwhile != nil:
		m.meanwhile()
		m.meanwhile = nil
		task.History.Events = append(task.History.Events, m.since(ctx, task)...)
	}
	return err
}

// since returns the events that a query's history lacks.
func (m *meeting) since(ctx context.Context, task *workflowservice.PollWorkflowTaskQueueResponse) (events []*historypb.HistoryEvent) {
	last := task.History.Events[len(task.History.Events)-1].EventId
	history := m.temporal.GetWorkflowHistory(ctx, task.WorkflowExecution.WorkflowId, task.WorkflowExecution.RunId, true, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		if err != nil {
			panic(err)
		}
		if e.EventId > last {
			events = append(events, e)
		}
		if e.EventId > last && e.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED {
			break
		}
	}
	return events
}

// verbKeeper is an audit that keeps verbs and events.
type verbKeeper struct {
	eventKeeper
	verbs []agent.Verb
}

func (k *verbKeeper) Event(e observe.RunEvent) error {
	k.eventKeeper.Event(context.Background(), e)
	return nil
}

func (k *verbKeeper) Command(c observe.RunCommand) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.verbs = append(k.verbs, c.Verb)
	return nil
}

// opener starts a worker with an audit and observers.
type opener func(observe.Auditor, ...observe.Observer) *worker.Worker

// hearOnce cancels a suspended run that no worker has, while a query for it is answered. A query may come
// with events for which there is no workflow task yet. Temporal's SDK then runs the workflow on with them,
// to answer from a state that nobody records. Observers and the audit hear of the events when they are
// recorded, once, and at the time that the log has.
func (s *stage) hearOnce(t *testing.T, run *client.Run, open opener) {
	m := &meeting{temporal: s.temporal, answered: make(chan struct{}), meanwhile: func() {
		err := dial(t, shared(t)).SignalWorkflow(t.Context(), run.Session, "", string(agent.VerbCancel), agent.CancelCommand{Reason: "no more"})
		if err != nil {
			panic(err)
		}
	}}
	o := connection(slog.DiscardHandler)
	// Before the codec: what it adds is decoded already.
	o.ConnectionOptions.DialOptions = append([]grpc.DialOption{grpc.WithChainUnaryInterceptor(m.carry)}, o.ConnectionOptions.DialOptions...)
	temporal, err := shared(t).Dial(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	s.temporal = temporal
	audit, observer := &verbKeeper{}, &eventKeeper{}
	second := open(audit, observer)
	status, err := run.Status(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, agent.StatusSuspended, status.Status, "the query has run ahead")

	require.Equal(t, agent.StatusCancelled, s.rest(t, run).Status)
	require.NoError(t, second.DrainSession(t.Context(), run.Session))
	stored := s.logged(t, run.Session)
	heard := observer.of(run.Session)
	require.NotEmpty(t, heard)
	require.Equal(t, stored[len(stored)-len(heard):], heard)
	require.Equal(t, heard, audit.of(run.Session))
	require.Equal(t, []agent.Verb{agent.VerbCancel}, audit.verbs)
}

func TestAQueryThatRunsAheadIsNotObserved(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	open := func(audit observe.Auditor, list ...observe.Observer) *worker.Worker {
		return s.observed(t, audit, list...)
	}
	first := open(nil)
	run, err := s.Start(t.Context(), "tester", "ask", nil)
	require.NoError(t, err)
	s.suspended(t, run)
	first.Stop()
	s.hearOnce(t, run, open)
}

// The last task of a suspended sub-agent says that its parent has its report. The run does nothing in it.
func TestAQueryThatRunsAheadOfASubAgentIsNotObserved(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	brain := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		if r.Messages[0].Text() == "go" {
			return callsTool("subagent__clerk", `{"task":"ask"}`)
		}
		return callsTool(agent.AskUserTool, `{"question":"Which one?"}`)
	})
	open := func(audit observe.Auditor, list ...observe.Observer) *worker.Worker {
		return s.open(t, &worker.Options{
			TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon, Models: map[string]model.Model{"script": brain}, Audit: audit, Observers: list,
			Agents: []agent.Definition{
				{Name: "boss", Model: "script", Agents: []agent.SubAgent{{Agent: "clerk"}}},
				{Name: "clerk", Model: "script", Tools: []string{agent.AskUserTool}},
			},
		})
	}
	first := open(nil)
	boss, err := s.Start(t.Context(), "boss", "go", nil)
	require.NoError(t, err)
	s.suspended(t, boss)
	tree, err := boss.Tree(t.Context())
	require.NoError(t, err)
	clerk := tree[slices.IndexFunc(tree, func(n agent.Node) bool { return n.Agent == "clerk" })].Session
	require.Eventually(t, func() bool {
		h := s.history(t, clerk, "")
		return h[len(h)-1].EventType == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED && slices.ContainsFunc(h, func(e *historypb.HistoryEvent) bool {
			return e.EventType == enums.EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED
		})
	}, patience, 10*time.Millisecond)
	first.Stop()
	run, err := s.Get(t.Context(), clerk)
	require.NoError(t, err)
	s.hearOnce(t, run, open)
}
