package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
)

// A run whose worker was killed in a call is running, for whoever describes or lists it,
// also when Temporal has given up the call. The next worker goes on, and nothing in the
// log tells of a rest: a crash is no status (HX-52).
func TestACrashIsNoStatus(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	c := newCell(t, "crash")
	w := startWorker(t, c.addr, c.queue, c.dir)
	run, err := c.Start(t.Context(), "helper", "help", nil)
	require.NoError(t, err)
	for e, err := range run.Follow(t.Context(), "") {
		require.NoError(t, err)
		if e.Type == agent.EventCallStarted {
			break
		}
	}
	kill(w)
	require.Equal(t, 1, c.begun(t, run), "nobody knows of the crash yet")
	require.Equal(t, agent.StatusRunning, c.described(t, run))
	require.Eventually(t, func() bool { return c.begun(t, run) == 0 }, patience, 50*time.Millisecond)
	require.Equal(t, agent.StatusRunning, c.described(t, run))
	for l, err := range c.List(t.Context(), &client.ListOptions{Query: "WorkflowId = '" + run.Session + "'"}) {
		require.NoError(t, err)
		require.Equal(t, agent.StatusRunning, l.Status)
	}
	startWorker(t, c.addr, c.queue, c.dir)
	require.Equal(t, agent.StatusCompleted, waitFor(t, run).Status)
	for e, err := range run.Follow(t.Context(), "") {
		require.NoError(t, err)
		require.NotContains(t, []agent.EventType{agent.EventRunSuspended, agent.EventRunResumed, agent.EventHoldAdded}, e.Type)
	}
}

// begun counts the activities of a run that a worker has begun, as Temporal knows it.
func (c *cell) begun(t *testing.T, run *client.Run) (n int) {
	t.Helper()
	d, err := dial(t, shared(t)).DescribeWorkflowExecution(t.Context(), run.Session, run.ID)
	require.NoError(t, err)
	for _, a := range d.GetPendingActivities() {
		if a.GetState() == enums.PENDING_ACTIVITY_STATE_STARTED {
			n++
		}
	}
	return n
}

// described is the status that Temporal itself has of a run; its workflow is open.
func (c *cell) described(t *testing.T, run *client.Run) (s agent.Status) {
	t.Helper()
	d, err := dial(t, shared(t)).DescribeWorkflowExecution(t.Context(), run.Session, run.ID)
	require.NoError(t, err)
	info := d.GetWorkflowExecutionInfo()
	require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, info.GetStatus())
	require.NoError(t, converter.GetDefaultDataConverter().FromPayload(info.GetSearchAttributes().GetIndexedFields()[agent.AttrStatus], &s))
	return s
}

// A time for which a run is parked may come while nobody works: the next worker
// lets the run go on. It asks no model before (HL-81, HA-111).
func TestATimeThatComesWithoutAWorker(t *testing.T) {
	t.Parallel()
	def, script := agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done"})
	s := setup(t, def, script)
	run := s.begin(t, "go", &client.StartOptions{Park: &agent.Conditions{After: agent.Duration(10 * time.Second), OnTimeout: agent.OnTimeoutResumeWithInput, Input: "it is time"}})
	due := s.suspended(t, run).Conditions.At
	s.worker.Stop()
	come := time.NewTimer(time.Until(due))
	<-come.C
	require.Empty(t, script.Requests())
	s.work(t, def, script)
	o, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "it is time", script.Requests()[0].Messages[1].Text())
	require.Equal(t, 1, s.events(t, run, agent.EventRunResumed))
}

// What is said to a run when it is resumed is in its log, for those who may read
// it, and nowhere where others look (HL-105).
func TestWhatIsSaidAtAResumeIsNotSpread(t *testing.T) {
	t.Parallel()
	const word = "swordfish-4711"
	v := newVault(t)
	run := v.begin(t, "go", nil)
	v.suspended(t, run)
	v.say(t, run, agent.PauseCommand{Reason: "lunch"})
	_, err := run.Resume(t.Context(), &client.ResumeOptions{Message: "The word is " + word})
	require.NoError(t, err)
	v.suspended(t, run)
	d, err := v.temporal.DescribeWorkflowExecution(t.Context(), run.Session, "")
	require.NoError(t, err)
	require.NotContains(t, d.String(), word, "memo and search attributes")
	_, err = run.Cancel(t.Context(), "enough", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCancelled, v.rest(t, run).Status)
	require.NotContains(t, v.said.String(), word, "logs")
	messages, err := v.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	require.Contains(t, messagesText(messages), word)
}

// A run whose history no build can replay, as a broken deploy leaves it, is terminated by
// somebody. Its session goes on from the store.
func TestASessionGoesOnAfterARunThatCantBeReplayed(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	script := testsuite.NewScript(testsuite.Reply{Text: "one"}, testsuite.Reply{Text: "two"})
	w := s.work(t, agent.Definition{}, script)
	first, out := s.run(t, "go", &client.StartOptions{Session: s.queue})
	require.Equal(t, "one", out.Text)
	w.Stop()
	broken := sdk.New(s.temporal, s.queue, sdk.Options{})
	broken.RegisterWorkflowWithOptions(func(ctx workflow.Context) error { return workflow.Sleep(ctx, time.Hour) }, workflow.RegisterOptions{Name: signals.WorkflowType})
	require.NoError(t, broken.Start())
	run, err := s.Start(t.Context(), "tester", "go on", &client.StartOptions{Session: first.Session})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(s.tasks(t, run.Session)) > 0 }, patience, 20*time.Millisecond)
	broken.Stop()
	require.NoError(t, s.temporal.TerminateWorkflow(t.Context(), run.Session, run.ID, "it can't be replayed"))
	s.work(t, agent.Definition{}, script)
	_, out = s.run(t, "and now?", &client.StartOptions{Session: first.Session})
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, "two", out.Text)
	messages, err := s.Transcript(t.Context(), first.Session)
	require.NoError(t, err)
	require.Equal(t, []string{"go", "one", "and now?", "two"}, []string{messages[0].Text(), messages[1].Text(), messages[2].Text(), messages[3].Text()})
}
