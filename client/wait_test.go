package client

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
)

// closedHistory is the history of an execution that is completed.
func closedHistory() func(context.Context, string) (*historypb.HistoryEvent, error) {
	return func(context.Context, string) (*historypb.HistoryEvent, error) {
		return &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED}, nil
	}
}

// waiting is a run that a test lets rest, with what the server tells of it.
type waiting struct {
	*fake
	info  *workflowpb.WorkflowExecutionInfo
	state agent.RunStatus
	asked int
	// described counts looks at the server.
	described int
}

func newWaiting(t *testing.T) (*waiting, *Run) {
	w := &waiting{fake: &fake{history: silent}, info: execution(t, "a", "01a1", running, agent.Memo{}, map[string]any{agent.AttrAgent: "lead"})}
	w.describe = func(string, string) (*workflowpb.WorkflowExecutionInfo, error) {
		w.described++
		return w.info, nil
	}
	w.status = func(context.Context) (agent.RunStatus, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asked++
		return w.state, nil
	}
	w.state = agent.RunStatus{Session: "a", Run: "01a1", Agent: "lead", Status: agent.StatusRunning, Turn: 7, Turns: 3, Cost: 5, Seq: 20}
	return w, &Run{client: New(w.fake, nil), Session: "a", ID: "01a1"}
}

func (w *waiting) rests(seq int64) {
	w.now(func() {
		w.state.Status, w.state.Seq, w.state.Suspension = agent.StatusSuspended, seq, &agent.Suspension{ID: "s-4", Kind: agent.SuspensionHeld, Checkpoint: "cp-17"}
		w.info.HistoryLength += 4
	})
}

// waits runs a wait and tells how long it took.
func waits(t *testing.T, r *Run, meanwhile func()) (*agent.Outcome, time.Duration) {
	t.Helper()
	began := time.Now()
	done := make(chan *agent.Outcome)
	go func() {
		out, err := r.Wait(t.Context())
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	synctest.Wait()
	meanwhile()
	return <-done, time.Since(began)
}

// pass lets fake time pass, and what it wakes come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Whoever waits is told of a rest that is there already (HL-25, OA-20, OA-22,
// OA-113).
func TestWaitReturnsARestThatIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWaiting(t)
		w.rests(21)
		out, took := waits(t, r, func() {})
		require.Zero(t, took)
		require.Equal(t, &agent.Outcome{
			V: 1, Type: "outcome", Session: "a", Run: "01a1", Agent: "lead", Status: agent.StatusSuspended, Turns: 3, Cost: 5, Started: start, Checkpoint: "cp-17", Seq: 21, Suspension: w.state.Suspension,
		}, out)
	})
}

// The history wakes it at once.
func TestWaitIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWaiting(t)
		tasks := make(chan int64)
		w.history = func(ctx context.Context, _ string) (*historypb.HistoryEvent, error) {
			select {
			case id := <-tasks:
				return &historypb.HistoryEvent{EventId: id, EventType: enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		out, took := waits(t, r, func() {
			tasks <- 4 // seen already
			tasks <- 12
			synctest.Wait()
			require.Equal(t, 2, w.asked)
			w.rests(22)
			tasks <- 16
		})
		require.Zero(t, took)
		require.Equal(t, "s-4", out.Suspension.ID)
	})
}

// About one notice in a hundred is lost in the server (HX-97): it costs as much time as
// went by before, and 20 s at most.
func TestWaitBearsALostNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWaiting(t)
		out, took := waits(t, r, func() {
			pass(10 * pollFor) // fake time: looks that find nothing new do not ask the run
			require.Equal(t, 1, w.asked)
			w.rests(22)
		})
		require.Equal(t, 15*pollFor, took)
		require.Equal(t, agent.StatusSuspended, out.Status)

		w, r = newWaiting(t)
		_, took = waits(t, r, func() {
			pass(time.Hour)
			w.rests(22)
		})
		require.LessOrEqual(t, took, time.Hour+pollMost)
	})
}

// Whoever waits for a run that rests for long asks the server seldom.
func TestWaitIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWaiting(t)
		var before int
		waits(t, r, func() {
			pass(time.Minute)
			require.LessOrEqual(t, w.described, 8, "in the first minute")
			w.now(func() { before = w.described })
			pass(time.Hour)
			require.LessOrEqual(t, w.described-before, 181, "in an hour")
			require.Equal(t, 1, w.asked, "the run is asked once")
			w.rests(22)
		})
		w.now(func() { w.described = 0 })
		r.ending.Store(true)
		w.result = func(string) (agent.Outcome, error) { return agent.Outcome{Type: "outcome"}, nil }
		waits(t, r, func() {
			pass(time.Minute)
			require.LessOrEqual(t, w.described, 8, "the same for the end")
			w.now(func() { w.history, w.info.Status = closedHistory(), completed })
		})
	})
}

// Many who wait for one run are woken by one long poll.
func TestWaitsShareAPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWaiting(t)
		polls, wake := 0, make(chan struct{})
		w.history = func(ctx context.Context, _ string) (*historypb.HistoryEvent, error) {
			polls++
			select {
			case <-wake:
				return &historypb.HistoryEvent{EventId: 14, EventType: enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		done := make(chan *agent.Outcome)
		for range 100 {
			go func() {
				out, err := r.Wait(t.Context())
				if err != nil {
					t.Error(err)
				}
				done <- out
			}()
		}
		synctest.Wait()
		require.Equal(t, 1, polls)
		w.rests(22)
		wake <- struct{}{}
		for range 100 {
			require.Equal(t, agent.StatusSuspended, (<-done).Status)
		}
		synctest.Wait()
		require.Empty(t, r.client.histories.followed, "nobody follows it any more")
	})
}

// A run that waits for a grant alone continues by itself: that is no rest.
func TestWaitIsNotForAGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWaiting(t)
		out, _ := waits(t, r, func() {
			w.now(func() {
				w.state.Status, w.state.Seq, w.state.Suspension = agent.StatusSuspended, 21, &agent.Suspension{ID: "s-3", Kind: agent.SuspensionAwaitingBudget}
				w.info.HistoryLength += 4
			})
			pass(time.Minute)
			w.rests(22)
		})
		require.Equal(t, "s-4", out.Suspension.ID)
	})
}

// A rest from before what was said last is none after it.
func TestWaitIsForARestAfterTheOwnAct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWaiting(t)
		w.rests(21)
		r.noteSeq(30)
		r.noteSeq(25)
		out, _ := waits(t, r, func() { w.rests(31) })
		require.EqualValues(t, 31, out.Seq)
	})
}

// Without a worker a listing's knowledge has to do.
func TestWaitWithoutAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWaiting(t)
		w.status = func(ctx context.Context) (agent.RunStatus, error) {
			if w.asked++; w.asked%2 == 0 {
				<-ctx.Done()
				return agent.RunStatus{}, ctx.Err()
			}
			return agent.RunStatus{}, serviceerror.NewFailedPrecondition("no poller")
		}
		memo := agent.Memo{V: 1, Run: "01a1", Status: agent.StatusSuspended, Turn: 7, Turns: 3, Cost: 5, Since: start, Suspension: "s-4", Requests: []agent.MemoRequest{{ID: "q-1", Type: agent.RequestApproval, Text: "Run pay?", Tool: "pay"}}}
		out, took := waits(t, r, func() {
			pass(3 * pollFor)
			rests := execution(t, "a", "01a1", running, memo, map[string]any{agent.AttrAgent: "lead", agent.AttrWaitsFor: []string{"input_required", "approval"}})
			w.now(func() { w.info = rests })
		})
		require.LessOrEqual(t, took, 8*pollFor)
		require.Equal(t, &agent.Outcome{
			V: 1, Type: "outcome", Session: "a", Run: "01a1", Agent: "lead", Status: agent.StatusSuspended, Turns: 3, Cost: 5, Started: start,
			Suspension: &agent.Suspension{ID: "s-4", Kind: agent.SuspensionInputRequired, Turn: 7, Since: start, Requests: []agent.Request{{
				ID: "q-1", Type: agent.RequestApproval, Session: "a", Run: "01a1", Suspension: "s-4", Agent: "lead", Text: "Run pay?", Call: &agent.RequestCall{Tool: "pay"},
			}}},
		}, out)
	})
}

// A worker that is busy is waited for: a listing lacks the arguments that an approver
// has to see.
func TestWaitForABusyWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWaiting(t)
		asked := agent.Request{ID: "q-1", Type: agent.RequestApproval, Call: &agent.RequestCall{ID: "t1.1", Tool: "pay", Arguments: json.RawMessage(`{"eur":800}`)}}
		w.status = func(ctx context.Context) (agent.RunStatus, error) {
			select {
			case <-time.After(3 * time.Second):
				return agent.RunStatus{Session: "a", Run: "01a1", Status: agent.StatusSuspended, Suspension: &agent.Suspension{ID: "s-4", Requests: []agent.Request{asked}}}, nil
			case <-ctx.Done():
				return agent.RunStatus{}, ctx.Err()
			}
		}
		memo := agent.Memo{V: 1, Run: "01a1", Status: agent.StatusSuspended, Suspension: "s-4", Requests: []agent.MemoRequest{{ID: "q-1", Type: agent.RequestApproval, Tool: "pay"}}}
		w.info = execution(t, "a", "01a1", running, memo, nil)
		out, took := waits(t, r, func() {})
		require.Equal(t, []agent.Request{asked}, out.Suspension.Requests)
		require.LessOrEqual(t, took, pollFor+restFor)
	})
}

// A run that continues in another execution is waited for there, and one that ends
// or is stopped has its own Outcome (HX-11).
func TestWaitFollowsTheRunToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWaiting(t)
		w.result = func(string) (agent.Outcome, error) {
			return agent.Outcome{Type: "outcome", Status: agent.StatusCompleted, Text: "Rome"}, nil
		}
		second := execution(t, "a", "02b2", running, agent.Memo{}, nil)
		second.FirstRunId = "01a1"
		first := w.info
		current := first
		w.describe = func(_, execution string) (*workflowpb.WorkflowExecutionInfo, error) {
			if execution == "01a1" {
				return first, nil
			}
			return current, nil
		}
		out, _ := waits(t, r, func() {
			w.now(func() { first.Status, current = continued, second })
			pass(2 * pollFor)
			w.now(func() { second.HistoryLength, w.state.Status = second.HistoryLength+1, agent.StatusCompleted })
			pass(2 * pollFor)
			w.now(func() { w.history, second.Status = closedHistory(), completed })
		})
		require.Equal(t, "Rome", out.Text)
	})
}

// A run that is being stopped may still look suspended; it rests no more.
func TestWaitAfterAStopIsForTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWaiting(t)
		w.update = accepted
		w.result = func(string) (agent.Outcome, error) {
			return agent.Outcome{Type: "outcome", Status: agent.StatusStopped}, nil
		}
		w.rests(21)
		_, err := r.Stop(t.Context(), "", nil)
		require.NoError(t, err)
		out, _ := waits(t, r, func() {
			pass(2 * pollFor)
			w.now(func() { w.history, w.info.Status = closedHistory(), completed })
		})
		require.Equal(t, agent.StatusStopped, out.Status)
		require.Zero(t, w.asked)
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := newWaiting(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := r.Wait(ctx)
		require.ErrorIs(t, err, agent.CodeTimeout)
		synctest.Wait() // nothing is left behind: the bubble would tell
	})
}

// A pause that a hook denies is reported once, also if a later one was denied since. Once a suspension came,
// the handle forgets the pause, so that a later Wait of an ended run asks no worker.
func TestWaitAfterADeniedPause(t *testing.T) {
	for denied, want := range map[string]string{
		"s-9":  "the hook quiet denied the pause (s-9), and the run goes on: busy",
		"s-10": "the pause (s-9) is over, and the run goes on: the hook quiet denied s-10 since",
	} {
		synctest.Test(t, func(t *testing.T) {
			w, r := newWaiting(t)
			r.noteAck(agent.Ack{Suspension: "s-9", Hold: &agent.AckHold{}})
			w.state.SuspensionDenied = &agent.SuspensionDenied{Suspension: denied, Hook: "quiet", Reason: "busy"}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			_, err := r.Wait(ctx)
			require.ErrorIs(t, err, agent.CodeDenied)
			require.ErrorContains(t, err, want)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w, r := newWaiting(t)
		w.state.SuspensionDenied = &agent.SuspensionDenied{Suspension: "s-3"} // of a pause before
		r.noteAck(agent.Ack{Suspension: "s-4", Hold: &agent.AckHold{}})
		w.rests(21)
		_, err := r.Wait(t.Context())
		require.NoError(t, err)
		require.Nil(t, r.pause.Load())
	})
	synctest.Test(t, func(t *testing.T) {
		w, r := newWaiting(t)
		r.noteAck(agent.Ack{Suspension: "s-4", Hold: &agent.AckHold{}})
		r.took(agent.ResumeCommand{}, agent.Ack{}, r.pause.Load())
		w.state.SuspensionDenied = &agent.SuspensionDenied{Suspension: "s-5", Hook: "quiet"} // somebody else's
		w.rests(21)
		_, err := r.Wait(t.Context())
		require.NoError(t, err)
	})
}

// A resume whose answer comes late does not make the handle forget a pause that was sent and answered since.
func TestALateResumeKeepsALaterPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWaiting(t)
		paused := make(chan struct{})
		w.update = func(_ context.Context, _ string, c agent.Command) (agent.Ack, error) {
			if c.Verb() == agent.VerbResume { // the run has resumed; its answer is on its way
				<-paused
				return agent.Ack{Session: "a", Run: "01a1", Status: agent.StatusRunning, Seq: 20}, nil
			}
			return agent.Ack{Session: "a", Run: "01a1", Suspension: "s-5", Seq: 22, Hold: &agent.AckHold{}}, nil
		}
		r.noteAck(agent.Ack{Suspension: "s-4", Hold: &agent.AckHold{}})
		done := make(chan error)
		go func() {
			_, err := r.Resume(t.Context(), nil)
			done <- err
		}()
		synctest.Wait()
		_, err := r.Pause(t.Context(), "", nil)
		require.NoError(t, err)
		close(paused)
		require.NoError(t, <-done)
		w.state.SuspensionDenied = &agent.SuspensionDenied{Suspension: "s-5", Hook: "quiet", Reason: "busy"}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		_, err = r.Wait(ctx)
		require.ErrorIs(t, err, agent.CodeDenied)
	})
}

// A server that does not answer twice ends no wait; one that does not three times in a row
// does.
func TestAServerThatStallsEndsNoWait(t *testing.T) {
	for missed, want := range map[int]error{2: nil, 3: agent.CodeTimeout} {
		f := &fake{history: closedHistory(), result: func(string) (agent.Outcome, error) { return agent.Outcome{Type: "outcome"}, nil }}
		f.describe = func(string, string) (*workflowpb.WorkflowExecutionInfo, error) {
			if missed--; missed >= 0 {
				return nil, serviceerror.NewDeadlineExceeded("the server is busy")
			}
			return execution(t, "s", "r", completed, agent.Memo{}, nil), nil
		}
		_, err := (&Run{client: New(f, nil), Session: "s", ID: "r"}).Wait(t.Context())
		require.ErrorIs(t, err, want)
	}
}

// A run that is waited for costs two questions: which execution is the run's, and how that one ends.
// The outcome is a third.
func TestAResultAsksAsSeldomAsItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends, described, polls := make(chan struct{}), 0, 0
		f := &fake{
			describe: func(session, _ string) (*workflowpb.WorkflowExecutionInfo, error) {
				described++
				return execution(t, session, "r", running, agent.Memo{}, nil), nil
			},
			history: func(context.Context, string) (*historypb.HistoryEvent, error) {
				polls++
				<-ends
				return &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED}, nil
			},
			result: func(string) (agent.Outcome, error) {
				return agent.Outcome{Type: "outcome", Status: agent.StatusCompleted}, nil
			},
		}
		run := &Run{client: New(f, nil), Session: "s", ID: "r"}
		go func() {
			synctest.Wait()
			close(ends)
		}()
		o, err := run.Result(t.Context())
		require.NoError(t, err)
		require.Equal(t, agent.StatusCompleted, o.Status)
		require.Equal(t, []int{1, 1}, []int{described, polls})
	})
}

// Who gives up while the outcome is read gets the context's error, as at any other time.
func TestAResultThatIsGivenUpWhileItIsRead(t *testing.T) {
	ctx, giveUp := context.WithCancel(t.Context())
	described := 0
	f := &fake{
		describe: func(session, _ string) (*workflowpb.WorkflowExecutionInfo, error) {
			if described++; described > 1 {
				giveUp()
				return nil, serviceerror.NewCanceled("context canceled")
			}
			return execution(t, session, "r", running, agent.Memo{}, nil), nil
		},
		history: func(context.Context, string) (*historypb.HistoryEvent, error) {
			return &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED}, nil
		},
		result: func(string) (agent.Outcome, error) { return agent.Outcome{}, &temporal.TerminatedError{} },
	}
	_, err := (&Run{client: New(f, nil), Session: "s", ID: "r"}).Result(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
