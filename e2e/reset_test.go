package e2e

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
)

// A run with a sub-agent and a hold on both is reset (temporal workflow reset): to where both
// worked, and to where both rest. It goes on by what its history then says, and comes to its
// end with all below it.
func TestAResetRunWithAHeldSubAgentEnds(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]func(tasks []int64) int64{
		"to where both worked": func(tasks []int64) int64 { return tasks[len(tasks)/2] },
		"to where both rest":   func(tasks []int64) int64 { return tasks[len(tasks)-1] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := plant(t, 1)
			run := f.grown(t, 2, 1)
			_, err := run.Interrupt(t.Context(), "the client rings", nil)
			require.NoError(t, err)
			f.still(t, run, 2, agent.StatusSuspended)
			tasks := f.tasks(t, run.Session)
			f.reset(t, run, to(tasks))
			was := run.ID
			run, err = f.Get(t.Context(), run.Session)
			require.NoError(t, err)
			require.Equal(t, was, run.ID, "else the sub-agent would look at its parent, and take it for another run's")
			_, err = run.Stop(t.Context(), "enough", nil)
			require.NoError(t, err)
			require.Equal(t, agent.StatusStopped, f.rest(t, run).Status)
			require.Eventually(t, func() bool {
				tree, err := run.Tree(t.Context())
				return err == nil && ended(tree)
			}, patience, 20*time.Millisecond)
		})
	}
}

// A run that was reset went on in another execution: what the one before it wrote is not
// missing once it is collected.
func TestASessionGoesOnAfterAResetAndACollection(t *testing.T) {
	t.Parallel()
	asks := testsuite.Reply{Calls: call("ask_user", map[string]any{"question": "what now?"})}
	s := setup(t, agent.Definition{Tools: []string{"ask_user"}}, testsuite.NewScript(asks, asks, asks, asks, asks))
	run := s.begin(t, "go", nil)
	var first int64
	for i := range 3 {
		w := s.suspended(t, run)
		if tasks := s.tasks(t, run.Session); i == 0 {
			first = tasks[len(tasks)-1]
		}
		if i < 2 {
			s.say(t, run, agent.AnswerCommand{Request: w.Requests[0].ID, Text: "so"})
		}
	}
	s.reset(t, run, first)
	run, err := s.Get(t.Context(), run.Session)
	require.NoError(t, err)
	s.say(t, run, agent.AnswerCommand{Request: s.suspended(t, run).Requests[0].ID, Text: "otherwise"})
	s.suspended(t, run)
	require.NoError(t, s.temporal.TerminateWorkflow(t.Context(), run.Session, "", "test"))
	c, err := s.log().Collect(t.Context(), 0, false)
	require.NoError(t, err)
	require.Positive(t, c.Deleted)
	next, err := s.Start(t.Context(), "tester", "go on", &client.StartOptions{Session: run.Session})
	require.NoError(t, err)
	s.suspended(t, next)
}

// A parent that is reset to before its sub-agent began knows nothing of it, and the server
// ends it with no parent: it looks for its parent by itself while it rests.
func TestASubAgentThatAResetHasForgottenEnds(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	f := plant(t, 1)
	run := f.grown(t, 2, 1)
	_, err := run.Interrupt(t.Context(), "the client rings", nil)
	require.NoError(t, err)
	f.still(t, run, 2, agent.StatusSuspended)
	tree, err := run.Tree(t.Context())
	require.NoError(t, err)
	below, err := f.Get(t.Context(), tree[1].Session)
	require.NoError(t, err)
	f.reset(t, run, f.tasks(t, run.Session)[0])
	run, err = f.Get(t.Context(), run.Session)
	require.NoError(t, err)
	_, err = run.Stop(t.Context(), "enough", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusStopped, f.rest(t, run).Status)
	require.Equal(t, agent.StatusCancelled, f.result(t, below).Status)
}

// reset resets a run to a workflow task, without what was said later.
func (s *stage) reset(t *testing.T, run *client.Run, task int64) {
	t.Helper()
	_, err := s.temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.Session, RunId: run.ID}, Reason: "test", RequestId: "r1",
		WorkflowTaskFinishEventId: task, ResetReapplyExcludeTypes: []enums.ResetReapplyExcludeType{enums.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL, enums.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE},
	})
	require.NoError(t, err)
}

func ended(tree []agent.Node) bool {
	for _, n := range tree {
		if !n.Status.Ended() {
			return false
		}
	}
	return true
}

// tasks are the workflow tasks of a session's execution that are done.
func (s *stage) tasks(t *testing.T, session string) (ids []int64) {
	t.Helper()
	history := s.temporal.GetWorkflowHistory(t.Context(), session, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		require.NoError(t, err)
		if e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			ids = append(ids, e.GetEventId())
		}
	}
	return ids
}

// A store that hangs as a run begins keeps a stop from being heard, since the run does not
// know yet what it is made of: the stop is not lost, and has its time from when it is heard.
// A cancel needs no store.
func TestAStopOfARunWhoseStoreHangs(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	hung := &stalled{Store: s.dir}
	s.store = hung
	s.lanes(t, nil)
	goOn := hung.hang()
	stopped, cancelled := s.told(t, 1, "go")[0], s.told(t, 1, "go")[0]
	for _, run := range []*client.Run{stopped, cancelled} {
		require.NoError(t, s.temporal.SignalWorkflow(t.Context(), run.Session, "", string(agent.VerbStop), agent.StopCommand{Reason: "enough"}))
	}
	_, err := cancelled.Cancel(t.Context(), "at once", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCancelled, s.rest(t, cancelled).Status)
	goOn()
	require.Equal(t, agent.StatusStopped, s.rest(t, stopped).Status)
}

// An approval is good once. After a reset the run asks again, the server says the recorded
// approval again, and so may whoever read it in the history: the call is not made a second
// time, until an approver decides anew.
func TestAnApprovalIsNotGoodAgainAfterAReset(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	run := v.begin(t, "go", nil)
	q := v.suspended(t, run).Requests[0]
	tasks := v.tasks(t, run.Session)
	asks := tasks[len(tasks)-1]
	approve := func() (client.ApproveOptions, signals.Claim) {
		claim, err := v.TokenClaim(t.Context(), run.Session, agent.VerbApprove, q.ID, "ana")
		require.NoError(t, err)
		claim.Expires = time.Now().Add(time.Hour)
		token, err := v.signer.Mint(claim)
		require.NoError(t, err)
		return client.ApproveOptions{Token: token}, claim
	}
	first, was := approve()
	require.Equal(t, run.ID, was.Execution)
	_, err := v.Approve(t.Context(), q, &first)
	require.NoError(t, err)
	require.Equal(t, cardNumber, <-v.cards)
	require.Equal(t, agent.StatusCompleted, v.rest(t, run).Status)

	for range 2 { // a reset, and one of what came of it
		info, err := v.temporal.DescribeWorkflowExecution(t.Context(), run.Session, "")
		require.NoError(t, err)
		_, err = v.temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
			Namespace: "default", WorkflowExecution: info.GetWorkflowExecutionInfo().GetExecution(), Reason: "test", RequestId: uuid.NewString(), WorkflowTaskFinishEventId: asks,
		})
		require.NoError(t, err)
		again := v.suspended(t, run).Requests[0]
		require.Equal(t, []string{q.ID, q.Digest}, []string{again.ID, again.Digest}, "it asks the same as before")
		_, err = v.Approve(t.Context(), q, &first)
		require.ErrorIs(t, err, agent.CodeBadSignature)
		second, is := approve()
		require.NotEqual(t, was.Execution, is.Execution)
		require.Empty(t, v.cards, "what was approved once is not done again")
		_, err = v.Approve(t.Context(), q, &second)
		require.NoError(t, err)
		require.Equal(t, cardNumber, <-v.cards)
		require.Equal(t, agent.StatusCompleted, v.rest(t, run).Status)
		first, was = second, is
	}
}
