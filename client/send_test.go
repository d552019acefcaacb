package client

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// A live run takes a message (OA-111, HA-99).
func TestSendToALiveRun(t *testing.T) {
	f := &fake{update: func(_ context.Context, session string, _ agent.Command) (agent.Ack, error) {
		return agent.Ack{Session: session, Run: "01a1", Seq: 7, Effect: agent.EffectAccepted}, nil
	}}
	run, err := New(f, nil).Send(t.Context(), "trip-42/pay-1", "go on", &SendOptions{Mode: agent.SendQueue, By: "ana", ID: "m-1"})
	require.NoError(t, err)
	require.Equal(t, "01a1", run.ID)
	require.EqualValues(t, 7, run.seq.Load())
	require.JSONEq(t, `{"id":"m-1","by":"ana","text":"go on","mode":"queue"}`, onWire(t, f.said[0]))
}

// atEnd is a session whose last run, of agent lead, has ended.
func atEnd(t *testing.T) *fake {
	return &fake{
		update: func(context.Context, string, agent.Command) (agent.Ack, error) { return agent.Ack{}, errCompleted },
		describe: func(string, string) (*workflowpb.WorkflowExecutionInfo, error) {
			return execution(t, "a", "01a1", completed, agent.Memo{}, map[string]any{agent.AttrAgent: "lead"}), nil
		},
	}
}

// At an end it begins the next run, with the agent of the last (OA-111, HA-99).
func TestSendBeginsTheNextRun(t *testing.T) {
	f := atEnd(t)
	var begun agent.Start
	f.begin = func(s agent.Start) (string, error) { begun = s; return "02b2", nil }
	run, err := New(f, nil).Send(t.Context(), "a", "go on", &SendOptions{By: "ana", ID: "m-1"})
	require.NoError(t, err)
	require.Equal(t, "02b2", run.ID)
	want := agent.Start{V: 1, Agent: "lead", Input: agent.Input{Text: "go on"}, By: "ana", ID: "m-1", Carry: agent.CarryInherit, After: "01a1"}
	require.Equal(t, want, begun)

	_, err = New(f, nil).Send(t.Context(), "a", "go on", &SendOptions{Agent: "other", By: "ana", ID: "m-1"})
	require.NoError(t, err)
	want.Agent = "other"
	require.Equal(t, want, begun)
	_, err = New(f, nil).Send(t.Context(), "a/b-1", "go on", nil)
	require.ErrorIs(t, err, agent.CodeClosed, "nobody but its parent begins a child")
}

// The next run is where the workers of the last one are, unless the client names a task queue.
func TestTheNextRunKeepsTheTaskQueue(t *testing.T) {
	for named, want := range map[string]string{"": "orders", signals.TaskQueue: signals.TaskQueue, "other": "other"} {
		f := atEnd(t)
		info, _ := f.describe("a", "")
		info.TaskQueue = "orders"
		f.describe = func(string, string) (*workflowpb.WorkflowExecutionInfo, error) { return info, nil }
		f.begin = func(agent.Start) (string, error) { return "02b2", nil }
		c := New(f, &Options{TaskQueue: named})
		_, err := c.Send(t.Context(), "a", "go on", nil)
		require.NoError(t, err)
		require.Equal(t, want, f.queue)
		_, err = c.Start(t.Context(), "lead", "go on", &StartOptions{Session: "a"})
		require.NoError(t, err)
		require.Equal(t, c.taskQueue, f.queue, "a start names its agent, and not a session's")
	}
}

// A start that was refused, as one of an agent that no worker has, does not make that agent the session's.
func TestARefusedStartIsNotTheSessionsAgent(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	require.NoError(t, dir.PutHead(t.Context(), store.Head{V: 1, Session: "a", Version: 1, Run: "01a1", Agent: "lead", Status: agent.StatusCompleted}))
	for run, want := range map[string]string{"02b2": "lead", "01a1": "laed"} {
		f := atEnd(t)
		f.describe = func(string, string) (*workflowpb.WorkflowExecutionInfo, error) {
			return execution(t, "a", run, enums.WORKFLOW_EXECUTION_STATUS_FAILED, agent.Memo{}, map[string]any{agent.AttrAgent: "laed"}), nil
		}
		var begun agent.Start
		f.begin = func(s agent.Start) (string, error) { begun = s; return "03c3", nil }
		_, err := New(f, &Options{Store: dir}).Send(t.Context(), "a", "go on", nil)
		require.NoError(t, err)
		require.Equal(t, want, begun.Agent, run)
	}
}

// What a run of the session has taken under an id is not said again in the next run, and
// another message under that id is refused (HA-95).
func TestSendUnderAKnownID(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	said := agent.TextMessage(agent.RoleUser, "go on")
	require.NoError(t, dir.PutHead(t.Context(), store.Head{V: 1, Session: "a", Version: 1, Receipts: []remembered.Receipt{{ID: "m-1", Run: "01a0", Digest: remembered.MessageDigest(said)}}}))
	c := New(atEnd(t), &Options{Store: dir})
	run, err := c.Send(t.Context(), "a", "go on", &SendOptions{ID: "m-1"})
	require.NoError(t, err)
	require.Equal(t, "01a0", run.ID)
	_, err = c.Send(t.Context(), "a", "stop", &SendOptions{ID: "m-1"})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.ErrorContains(t, err, "id m-1 is that of something else, which run 01a0 has")
}

// Where there is no session a message begins one, for the agent that it names, or
// is refused (OA-111).
func TestSendToNoSession(t *testing.T) {
	missing := serviceerror.NewNotFound("no such workflow")
	f := &fake{
		update:   func(context.Context, string, agent.Command) (agent.Ack, error) { return agent.Ack{}, missing },
		describe: func(string, string) (*workflowpb.WorkflowExecutionInfo, error) { return nil, missing },
		begin:    func(agent.Start) (string, error) { return "01a1", nil },
	}
	_, err := New(f, nil).Send(t.Context(), "a", "go on", nil)
	require.ErrorIs(t, err, agent.CodeNotFound)
	_, err = New(f, nil).Send(t.Context(), "a", "go on", &SendOptions{Agent: "lead"})
	require.NoError(t, err)
}

// Somebody else may begin the next run first: then that one is told.
func TestSendLosesTheRace(t *testing.T) {
	f := atEnd(t)
	busy := serviceerror.NewWorkflowExecutionAlreadyStarted("", "", "02b2")
	f.begin = func(agent.Start) (string, error) { return "", busy }
	_, err := New(f, nil).Send(t.Context(), "a", "go on", nil)
	require.ErrorIs(t, err, agent.CodeBusy)
	require.Len(t, f.said, sendTries)
	require.Equal(t, f.said[0], f.said[1], "the same message, with the same id")
	f.begin = func(agent.Start) (string, error) {
		f.update = func(context.Context, string, agent.Command) (agent.Ack, error) { return agent.Ack{Run: "02b2"}, nil }
		return "", busy
	}
	run, err := New(f, nil).Send(t.Context(), "a", "go on", nil)
	require.NoError(t, err)
	require.Equal(t, "02b2", run.ID)
}

// A run that has decided to end takes nothing, and has to store what was said
// before the next can begin.
func TestSendWaitsForTheEnd(t *testing.T) {
	for name, late := range map[string]func() (agent.Ack, error){
		"refused": func() (agent.Ack, error) {
			e := agent.Errorf(agent.CodeClosed, "the run is at its end")
			e.Run = "01a1"
			return agent.Ack{}, e
		},
		"run_ended": func() (agent.Ack, error) { return agent.Ack{Run: "01a1", Effect: agent.EffectRunEnded}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := atEnd(t)
				info := execution(t, "a", "01a1", running, agent.Memo{}, map[string]any{agent.AttrAgent: "lead"})
				f.describe = func(string, string) (*workflowpb.WorkflowExecutionInfo, error) { return info, nil }
				f.update = func(context.Context, string, agent.Command) (agent.Ack, error) { return late() }
				f.history = silent
				f.result = func(string) (agent.Outcome, error) { return agent.Outcome{Type: "outcome"}, nil }
				f.begin = func(agent.Start) (string, error) { return "02b2", nil }
				sent := make(chan *Run)
				go func() {
					run, err := New(f, nil).Send(t.Context(), "a", "go on", nil)
					if err != nil {
						t.Error(err)
					}
					sent <- run
				}()
				pass(3 * pollFor)
				f.now(func() { f.history, info.Status = closedHistory(), completed })
				require.Equal(t, "02b2", (<-sent).ID)
			})
		})
	}
}

// An event goes to the runs that wait for its topic, a few at a time, and says
// which of them it did not reach (OA-15, OA-115, HL-116).
func TestEmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		f := &fake{list: func(string) (all []*workflowpb.WorkflowExecutionInfo) {
			for i := range 30 {
				all = append(all, execution(t, fmt.Sprintf("s-%02d", i), fmt.Sprintf("r-%02d", i), running, agent.Memo{}, nil))
			}
			return all
		}}
		f.update = func(ctx context.Context, session string, command agent.Command) (agent.Ack, error) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second) // fake time
			now.Add(-1)
			switch session {
			case "s-03":
				return agent.Ack{}, agent.Errorf(agent.CodeStale, "waits for another payload")
			case "s-07":
				stopping := agent.Errorf(agent.CodeStale, "the run is being stopped")
				stopping.Retryable = true
				return agent.Ack{}, stopping
			case "s-04":
				return agent.Ack{}, errCompleted
			case "s-06":
				return agent.Ack{Effect: agent.EffectRunEnded}, nil
			case "s-05", "s-02":
				return agent.Ack{}, serviceerror.NewFailedPrecondition("no poller")
			}
			return accepted(ctx, session, command)
		}
		got, err := New(f, nil).Emit(t.Context(), "orders.paid", map[string]int{"order": 42}, &EmitOptions{ID: "e-1", By: "shop", TaskQueue: "orders"})
		require.NoError(t, err)
		require.Equal(t, 24, got.Accepted)
		require.Len(t, got.Failed, 3)
		require.Equal(t, []string{"s-02", "r-02"}, []string{got.Failed[0].Session, got.Failed[0].Run})
		require.Equal(t, agent.CodeNoWorker, got.Failed[1].Error.Code)
		require.Equal(t, []any{"s-07", agent.CodeStale}, []any{got.Failed[2].Session, got.Failed[2].Error.Code}, "its sender has the event yet")
		require.EqualValues(t, atOnce, most.Load())
		require.Equal(t, "WorkflowType = 'fermata.run' AND ExecutionStatus = 'Running' AND (FermataWaitsFor = 'topic:orders.paid' OR FermataWaitsFor = 'every_topic') AND TaskQueue = 'orders'", f.queries[0])
		require.Contains(t, f.said, agent.Command(agent.EmitCommand{CommandHeader: agent.CommandHeader{ID: "e-1", By: "shop", Run: "r-00"}, Topic: "orders.paid", Payload: []byte(`{"order":42}`)}))
	})
}

func TestEmitRefuses(t *testing.T) {
	c := New(&fake{}, nil)
	for topic, payload := range map[string]any{"": nil, "no blanks": nil, "fine": make(chan int)} {
		_, err := c.Emit(t.Context(), topic, payload, nil)
		require.ErrorIs(t, err, agent.CodeInvalidInput)
	}
	_, err := c.Emit(t.Context(), "fine", string(make([]byte, 70_000)), nil)
	require.ErrorIs(t, err, agent.CodeTooLarge)
	_, err = c.Emit(t.Context(), "fine", nil, &EmitOptions{Run: "r-1"})
	require.ErrorContains(t, err, "a run is one of a session")
}

// An event for one run of a session names it, so that a later run refuses it.
func TestEmitToARun(t *testing.T) {
	f := &fake{update: accepted}
	_, err := New(f, nil).Emit(t.Context(), "paid", nil, &EmitOptions{Session: "s-1", Run: "r-1", ID: "e-1"})
	require.NoError(t, err)
	require.Equal(t, []agent.Command{agent.EmitCommand{CommandHeader: agent.CommandHeader{ID: "e-1", Run: "r-1"}, Topic: "paid"}}, f.said)
}
