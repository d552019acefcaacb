package e2e

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
)

// An execution that was reset to before what it has stored stores its own over that: its
// fence begins behind the one of the execution before it (temporal workflow reset).
func TestAResetRunStoresItsEnd(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(
		asks("Where to?"), testsuite.Reply{Match: "Rome", Text: "off to Rome"}, testsuite.Reply{Match: "Oslo", Text: "off to Oslo"},
	))
	run := s.begin(t, "go", nil)
	answer := func(text string) {
		req := s.suspended(t, run).Requests[0]
		s.say(t, run, &agent.AnswerCommand{Request: req.ID, Text: text})
	}
	s.suspended(t, run)
	before := s.lastTask(t, run.Session)
	answer("Rome")
	require.Equal(t, agent.StatusCompleted, s.rest(t, run).Status)
	first, err := s.dir.Head(t.Context(), run.Session)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, first.Status)

	reset, err := s.temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.Session, RunId: run.ID}, Reason: "test", RequestId: "r1",
		WorkflowTaskFinishEventId: before, ResetReapplyExcludeTypes: []enums.ResetReapplyExcludeType{enums.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL, enums.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE},
	})
	require.NoError(t, err)
	run, err = s.Get(t.Context(), run.Session)
	require.NoError(t, err)
	answer("Oslo")
	require.Equal(t, "off to Oslo", s.rest(t, run).Text)
	h, err := s.dir.Head(t.Context(), run.Session)
	require.NoError(t, err)
	require.Equal(t, []any{agent.StatusCompleted, reset.GetRunId()}, []any{h.Status, h.Execution})
	require.Positive(t, h.Fence.Compare(first.Fence))
	messages, err := s.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	require.Equal(t, "off to Oslo", messages[len(messages)-1].Text())
}

// lastTask is the last workflow task of a session's execution that is done.
func (s *stage) lastTask(t *testing.T, session string) (id int64) {
	t.Helper()
	history := s.temporal.GetWorkflowHistory(t.Context(), session, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		require.NoError(t, err)
		if e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			id = e.GetEventId()
		}
	}
	return id
}

// twins is a store that keeps every write of heads and does each of them once more at
// its end, the latest first: as if each had a twin that was held back until then.
type twins struct {
	store.Store
	mu    sync.Mutex
	heads []store.Head
}

func (s *twins) PutHead(ctx context.Context, h store.Head) error {
	s.mu.Lock()
	s.heads = append(s.heads, h)
	s.mu.Unlock()
	return s.Store.PutHead(ctx, h)
}

// No write of a session that comes once more, after its successors, moves its head back:
// claims, seals, ends, forks and recoveries of real runs.
func TestLateTwinsOfRealRunsChangeNothing(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	late := &twins{Store: s.dir}
	s.store = late
	s.work(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(
		testsuite.Reply{Match: "ask", Calls: call(agent.AskUserTool, map[string]any{"question": "Where to?"})}, testsuite.Reply{Match: ".*", Text: "done"}, testsuite.Reply{Match: ".*", Text: "done"}, testsuite.Reply{Match: ".*", Text: "done"},
	))
	first := s.begin(t, "ask", nil)
	s.suspended(t, first)
	require.NoError(t, s.temporal.TerminateWorkflow(t.Context(), first.Session, "", "test"))
	second := s.begin(t, "go on", &client.StartOptions{Session: first.Session})
	require.Equal(t, agent.StatusCompleted, s.rest(t, second).Status)
	anew, err := s.Fork(t.Context(), first.Session, &client.ForkOptions{NewSession: true, Text: "again"})
	require.NoError(t, err)
	fork, err := anew.Start(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, s.rest(t, fork).Status)

	late.comeOnceMore(t, s, 6, first.Session, fork.Session)
}

// Nor does a write of a session that was imported: its claim, the imported head, seals and the end.
func TestLateTwinsOfAnImportChangeNothing(t *testing.T) {
	t.Parallel()
	def := agent.Definition{Tools: []string{agent.AskUserTool}}
	s := setup(t, def, testsuite.NewScript(asks("Where to?")))
	run := s.begin(t, "go", nil)
	asked := s.suspended(t, run)
	file := s.export(t, run.Session, client.ExportOptions{})

	there := elsewhere(t)
	late := &twins{Store: there.dir}
	there.store = late
	there.Client = client.New(there.temporal, &client.Options{TaskQueue: there.queue, Store: late, Live: there.hub})
	there.work(t, def, testsuite.NewScript(testsuite.Reply{Match: ".*", Text: "done"}))
	_, err := there.bring(t, file)
	require.NoError(t, err)
	moved := there.here(t, run.Session)
	there.suspended(t, moved)
	there.say(t, moved, &agent.AnswerCommand{Request: asked.Requests[0].ID, Text: "Rome"})
	require.Equal(t, agent.StatusCompleted, there.rest(t, moved).Status)
	late.comeOnceMore(t, there, 3, run.Session)
}

// comeOnceMore repeats the writes of sessions that have completed, the latest first. There have to be at
// least so many. Each leaves the heads as they are.
func (s *twins) comeOnceMore(t *testing.T, at *stage, least int, sessions ...string) {
	t.Helper()
	want := map[string]store.Head{}
	for _, session := range sessions {
		h, err := at.dir.Head(t.Context(), session)
		require.NoError(t, err)
		require.Equal(t, agent.StatusCompleted, h.Status)
		want[session] = h
	}
	n := 0
	log := store.NewLog(at.dir)
	for _, h := range slices.Backward(s.heads) {
		is, ours := want[h.Session]
		if !ours {
			continue
		}
		n++
		_, err := log.PutHead(t.Context(), h)
		require.True(t, err == nil || errors.Is(err, agent.CodeStale), "%v", err)
		got, err := at.dir.Head(t.Context(), h.Session)
		require.NoError(t, err)
		require.Equal(t, is, got, "version %d of session %s, once more", h.Version, h.Session)
	}
	require.GreaterOrEqual(t, n, least, "writes that came once more")
}
