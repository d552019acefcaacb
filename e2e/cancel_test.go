package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// cancels are the ways to cancel a run.
var cancels = map[string]func(*testing.T, *stage, *client.Run){
	"an update": func(t *testing.T, _ *stage, run *client.Run) {
		ack, err := run.Cancel(t.Context(), "wrong client", nil)
		require.NoError(t, err)
		require.Equal(t, []any{agent.StatusRunning, agent.EffectAccepted}, []any{ack.Status, ack.Effect})
	},
	"a signal": func(t *testing.T, s *stage, run *client.Run) {
		require.NoError(t, s.temporal.SignalWorkflow(t.Context(), run.Session, "", "cancel", json.RawMessage(`{"reason":"wrong client"}`)))
	},
	"temporal workflow cancel": func(t *testing.T, s *stage, run *client.Run) {
		require.NoError(t, s.temporal.CancelWorkflow(t.Context(), run.Session, ""))
	},
	"an update while it is held": func(t *testing.T, _ *stage, run *client.Run) {
		_, err := run.Pause(t.Context(), "", nil)
		require.NoError(t, err)
		_, err = run.Cancel(t.Context(), "wrong client", nil)
		require.NoError(t, err)
	},
	"an update while it is stopped": func(t *testing.T, _ *stage, run *client.Run) {
		_, err := run.Stop(t.Context(), "", nil)
		require.NoError(t, err)
		_, err = run.Cancel(t.Context(), "wrong client", nil)
		require.NoError(t, err)
	},
}

// A cancelled run waits for what a tool in flight gives back when its context is cancelled, and keeps
// it, however the run is cancelled. The model is not asked again (PA-38).
func TestACancelKeepsWhatACallGivesBack(t *testing.T) {
	t.Parallel()
	for name, cancel := range cancels {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := make(chan string, 1)
			script := testsuite.NewScript(testsuite.Reply{Calls: call("block", nil)}, testsuite.Reply{Text: "done"})
			s := setup(t, agent.Definition{}, script, block(begun))
			run := s.begin(t, "go", nil)
			<-begun
			cancel(t, s, run)
			out := s.result(t, run)
			require.Equal(t, agent.StatusCancelled, out.Status)
			require.Nil(t, out.Handoff)
			require.Len(t, script.Requests(), 1, "no model is asked any more")
			results := s.results(t, run)
			require.Len(t, results, 1)
			require.Equal(t, []any{agent.CallOK, "half of it", true}, []any{results[0].Status, results[0].Text, results[0].Partial})
			var last []agent.EventType
			for e, err := range run.Follow(t.Context(), "") {
				require.NoError(t, err)
				last = append(last, e.Type)
			}
			require.Equal(t, []agent.EventType{agent.EventCallDone, agent.EventMessage, agent.EventTurnEnded, agent.EventRunCancelled}, last[len(last)-4:])
			require.Zero(t, s.count(t, run, enums.EVENT_TYPE_TIMER_FIRED), "the grace ends early when the call is back")
		})
	}
}

// heedless is a tool that does not heed its context: it works until it is released.
func heedless(begun chan<- string) (block tool.Tool, release func()) {
	over := make(chan struct{})
	return tool.New("block", "pays, and waits for the bank", func(_ context.Context, c *tool.Call, _ struct{}) (string, error) {
		begun <- c.ID
		<-over
		return "paid", nil
	}, nil), func() { close(over) }
}

// A cancelled run does not wait longer than the grace of an interrupt, 5 seconds, for a tool that
// ignores that it was cancelled: the call is unknown. Meanwhile the run is `running`, `cancelling`,
// and takes nothing (PA-38).
func TestACancelGivesACallUpAfterTheGrace(t *testing.T) {
	t.Parallel()
	begun := make(chan string, 1)
	block, release := heedless(begun)
	defer release()
	script := testsuite.NewScript(testsuite.Reply{Calls: call("block", nil)}, testsuite.Reply{Text: "done"})
	s := setup(t, agent.Definition{}, script, block)
	run := s.begin(t, "go", nil)
	<-begun
	said := time.Now()
	_, err := run.Cancel(t.Context(), "wrong client", &client.CancelOptions{By: "ana"})
	require.NoError(t, err)

	st, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, []any{agent.StatusRunning, agent.ReasonCancelling}, []any{st.Status, st.Reason})
	require.Len(t, st.InFlight, 1)
	require.Equal(t, "block", st.InFlight[0].Name)
	require.ErrorIs(t, run.CanResume(t.Context()), agent.CodeStale)
	_, err = run.Resume(t.Context(), nil)
	require.ErrorIs(t, err, agent.CodeStale)
	require.ErrorContains(t, err, "the run is being cancelled")
	ack, err := run.Stop(t.Context(), "", nil)
	require.NoError(t, err)
	require.Equal(t, agent.EffectAlready, ack.Effect)

	out := s.result(t, run)
	took := time.Since(said)
	t.Logf("it ended %s after the cancel", took)
	require.GreaterOrEqual(t, took, 5*time.Second)
	require.Equal(t, []any{agent.StatusCancelled, "wrong client", "ana"}, []any{out.Status, out.Reason, out.By})
	results := s.results(t, run)
	require.Equal(t, agent.CallUnknown, results[0].Status)
	require.Contains(t, results[0].Text, "the run was cancelled while the call was in progress, and it did not come back in time")
	require.Len(t, script.Requests(), 1)
}

// A second cancel does not wait for the grace. Which comes first does not matter: what `fermata
// cancel` has begun, `temporal workflow cancel` ends at once, too (PA-36, PA-38).
func TestASecondCancelEndsTheGrace(t *testing.T) {
	t.Parallel()
	for _, second := range []string{"an update", "a signal", "temporal workflow cancel"} {
		t.Run(second, func(t *testing.T) {
			t.Parallel()
			begun := make(chan string, 1)
			block, release := heedless(begun)
			defer release()
			s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Calls: call("block", nil)}), block)
			run := s.begin(t, "go", nil)
			<-begun
			first := agent.CancelCommand{CommandHeader: agent.CommandHeader{ID: "c-1"}, Reason: "the first"}
			ack := s.say(t, run, first)
			require.Equal(t, agent.StatusRunning, ack.Status)
			require.Equal(t, ack, s.say(t, run, first), "the same cancel, sent again, is no second one")
			st, err := run.Status(t.Context())
			require.NoError(t, err)
			require.Equal(t, agent.ReasonCancelling, st.Reason)
			cancels[second](t, s, run)
			out := s.result(t, run)
			require.Equal(t, []any{agent.StatusCancelled, "the first"}, []any{out.Status, out.Reason})
			require.Equal(t, agent.CallUnknown, s.results(t, run)[0].Status)
			require.Equal(t, 1, s.events(t, run, agent.EventRunCancelled))
			require.Zero(t, s.count(t, run, enums.EVENT_TYPE_TIMER_FIRED), "it did not wait for the grace")
		})
	}
}

// The worker that makes a call is killed in the grace: the next one ends the run when the grace is
// over. The run does not wait until Temporal misses the heartbeats of the call (PA-38).
func TestAWorkerKilledInTheGraceKeepsNoCancelledRun(t *testing.T) {
	t.Parallel()
	c := newCell(t, "kill-cancel")
	run, err := c.Start(t.Context(), "slow", "slow", nil)
	require.NoError(t, err)
	w := startWorker(t, c.addr, c.queue, c.dir)
	c.await(t, run, agent.EventCallStarted, "heedless")
	_, err = run.Cancel(t.Context(), "wrong client", nil)
	require.NoError(t, err)
	kill(w)
	startWorker(t, c.addr, c.queue, c.dir)
	out := waitFor(t, run)
	require.Equal(t, []any{agent.StatusCancelled, "wrong client"}, []any{out.Status, out.Reason})
	messages, err := c.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	last := messages[len(messages)-1]
	require.Equal(t, agent.CallUnknown, last.Parts[0].Result.Status)
	require.Contains(t, last.Parts[0].Result.Text, "it did not come back in time")
	history := dial(t, shared(t)).GetWorkflowHistory(t.Context(), run.Session, run.ID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		require.NoError(t, err)
		require.NotEqual(t, enums.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT, e.EventType)
	}
}

// A parent's cancel reaches its sub-agents at once, and each of them has its own grace: what a
// sub-agent's tool gives back is in the sub-agent's log. A second cancel of the parent, which waits
// for a sub-agent alone, ends that one at once (PA-38).
func TestACancelOfATree(t *testing.T) {
	t.Parallel()
	begun := make(chan string, 1)
	slow := make(chan struct{})
	heeds := tool.New("heed", "works until it is stopped", func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		begun <- c.ID
		<-ctx.Done()
		<-slow // in the grace
		return "half", nil
	}, nil)
	stubborn, release := heedless(begun)
	defer release()
	lead := func(below string) agent.Definition {
		return agent.Definition{Name: "lead_" + below, Model: "m", Agents: []agent.SubAgent{{Agent: below, Tools: []string{"*"}}}}
	}
	s := testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{
			Tools: []tool.Tool{stubborn, heeds},
			Agents: []agent.Definition{
				lead("heeds"), {Name: "heeds", Model: "m", Tools: []string{"heed"}},
				lead("ignores"), {Name: "ignores", Model: "m", Tools: []string{"block"}},
			},
		},
		Model: testsuite.NewScript(
			testsuite.Reply{Match: `\Aask heeds`, Calls: call("subagent__heeds", map[string]any{"task": "heed"})},
			testsuite.Reply{Match: `\Aheed`, Calls: call("heed", nil)},
			testsuite.Reply{Match: `\Aask ignores`, Calls: call("subagent__ignores", map[string]any{"task": "block"})},
			testsuite.Reply{Match: `\Ablock`, Calls: call("block", nil)},
		),
		Server: dial(t, shared(t)),
	})
	result := func(run *testsuite.Run) *agent.ToolResult {
		messages := run.Transcript()
		return messages[len(messages)-1].Parts[0].Result
	}

	run := s.Start("lead_heeds", "ask heeds", nil)
	<-begun
	child := s.Run(run.Session + "/heeds-1")
	run.Cancel()
	cancelling := func() bool {
		st := child.Status()
		return st.Reason == agent.ReasonCancelling || st.Status.Ended()
	}
	require.Eventually(t, cancelling, patience, 10*time.Millisecond)
	close(slow)
	require.Equal(t, agent.StatusCancelled, run.Ended().Status)
	require.Equal(t, agent.StatusCancelled, child.Ended().Status)
	require.Equal(t, []any{agent.CallOK, "half"}, []any{result(child).Status, result(child).Text})

	run = s.Start("lead_ignores", "ask ignores", nil)
	<-begun
	child = s.Run(run.Session + "/ignores-1")
	require.Equal(t, agent.StatusRunning, run.Cancel().Status)
	require.Eventually(t, cancelling, patience, 10*time.Millisecond)
	require.Equal(t, agent.EffectAccepted, run.Cancel().Effect)
	require.Equal(t, agent.StatusCancelled, run.Ended().Status)
	require.Equal(t, agent.StatusCancelled, child.Ended().Status)
	require.Contains(t, result(child).Text, "the run ended while the call was in progress", "it did not wait for the grace")
}

// payingTree is flows of three levels: outer calls mid, and mid calls inner, whose step works until it
// is stopped.
func payingTree(begun chan<- struct{}) []flow.Flow {
	inner := flow.New("inner", func(c flow.Context, _ string) (string, error) {
		return flow.Do(c, "pay", func(ctx context.Context, _ *tool.Call) (string, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return "paid", nil
		}, nil)
	}, nil)
	return []flow.Flow{below("outer", "mid"), below("mid", "inner"), inner}
}

// Who cancelled a tree is in the outcome of each of its runs, also where a call met the cancel before
// the parent's order came: in the process that heard the cancel, and in another one.
func TestACancelNamesWhoOrderedItInTheWholeTree(t *testing.T) {
	t.Parallel()
	for name, apart := range map[string]bool{"one process": false, "workflows and steps apart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := make(chan struct{}, 1)
			s := on(t, shared(t))
			work := func(workflowsOnly bool) *worker.Worker {
				return s.open(t, &worker.Options{
					TaskQueue: s.queue, Flows: payingTree(begun), Store: s.store, Logger: zap.NewNop(),
					Temporal: func(_ worker.Lane, o *sdk.Options) {
						o.WorkerStopTimeout, o.LocalActivityWorkerOnly = time.Second, workflowsOnly
					},
				})
			}
			if apart {
				work(true)
			}
			s.worker = work(false)
			for range 4 { // of two processes, either may hear the cancel
				run, err := s.Start(t.Context(), "outer", "go", nil)
				require.NoError(t, err)
				<-begun
				_, err = run.Cancel(t.Context(), "wrong client", &client.CancelOptions{By: "ana"})
				require.NoError(t, err)
				for _, below := range []string{"", "/mid-1", "/mid-1/inner-1"} {
					one, err := s.Get(t.Context(), run.Session+below)
					require.NoError(t, err)
					out := s.rest(t, one)
					require.Equal(t, []any{agent.StatusCancelled, "ana"}, []any{out.Status, out.By}, one.Session)
				}
			}
		})
	}
}

// A process that is asked to cancel what it has in flight ends no run: anybody who may query a workflow
// could ask so.
func TestAForgedCancelEndsNoRun(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 2)
	s := on(t, shared(t))
	s.worker = s.open(t, &worker.Options{TaskQueue: s.queue, Flows: payingTree(begun), Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon})
	run, err := s.Start(t.Context(), "outer", "go", nil)
	require.NoError(t, err)
	<-begun
	inner, err := s.Get(t.Context(), run.Session+"/mid-1/inner-1")
	require.NoError(t, err)
	_, err = signals.Held.Ask(t.Context(), s.temporal, signals.ProcessID(s.processOf(t, inner.Session)), "", agent.HoldRef{Session: run.Session, N: 1, Verb: agent.VerbCancel, By: "boss"})
	require.NoError(t, err)
	require.Equal(t, agent.StatusSuspended, waitFor(t, inner).Status, "a person is asked whether the step had its effect")
}

// A session that was cancelled and deleted begins again in the same process: the old cancel is not for it.
func TestADeletedSessionThatBeginsAgainIsNotCancelled(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 2)
	s := on(t, shared(t))
	s.worker = s.open(t, &worker.Options{TaskQueue: s.queue, Flows: payingTree(begun), Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon})
	id := "again-" + s.queue
	for range 2 {
		run, err := s.Start(t.Context(), "outer", "go", &client.StartOptions{Session: id})
		require.NoError(t, err)
		select {
		case <-begun:
		case <-time.After(patience):
			require.Fail(t, "its step was not made")
		}
		_, err = run.Cancel(t.Context(), "", &client.CancelOptions{By: "ana"})
		require.NoError(t, err)
		s.rest(t, run)
		_, err = s.Delete(t.Context(), id)
		for errors.Is(err, agent.CodeTimeout) { // a busy cluster may not answer one of its many questions in time
			_, err = s.Delete(t.Context(), id)
		}
		if !errors.Is(err, agent.CodeNotFound) { // the last question was whether anything is left
			require.NoError(t, err)
		}
	}
}
