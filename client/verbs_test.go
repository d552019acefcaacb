package client

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

var errCompleted = serviceerror.NewNotFound("workflow execution already completed")

// The server tells in two ways that a verb came too late (HX-86).
func TestAVerbThatComesTooLate(t *testing.T) {
	for _, late := range []error{errCompleted, serviceerror.NewNotFound("workflow update was aborted by closing workflow")} {
		f := &fake{
			update: func(context.Context, string, agent.Command) (agent.Ack, error) { return agent.Ack{}, late },
			describe: func(string, string) (*workflowpb.WorkflowExecutionInfo, error) {
				return execution(t, "trip-42", "01a1", completed, agent.Memo{V: 1, Status: agent.StatusStopped}, nil), nil
			},
		}
		_, err := (&Run{client: New(f, nil), Session: "trip-42", ID: "01a1"}).Interrupt(t.Context(), "", nil)
		var e *agent.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, []any{agent.CodeClosed, agent.StatusStopped}, []any{e.Code, e.Status})
	}
}

func accepted(_ context.Context, session string, command agent.Command) (agent.Ack, error) {
	return agent.Ack{V: 1, Session: session, Run: command.Header().Run, Status: agent.StatusRunning, Seq: 7, Effect: agent.EffectAccepted}, nil
}

// Whatever is said through a run's handle names the run.
func TestWhatIsSaid(t *testing.T) {
	f := &fake{update: accepted}
	c := New(f, nil)
	r := &Run{client: c, Session: "trip-42", ID: "01a1"}
	req := agent.Request{ID: "q-7", Session: "trip-42/pay-1", Run: "01a2", Digest: "9f2c41aa03b1c2d4"}
	choice := 0
	for want, say := range map[string]func(ctx context.Context) (agent.Ack, error){
		`{"run":"01a1","reason":"lunch"}`: func(ctx context.Context) (agent.Ack, error) { return r.Pause(ctx, "lunch", nil) },
		`{"run":"01a1"}`:                  func(ctx context.Context) (agent.Ack, error) { return r.Interrupt(ctx, "", nil) },
		`{"by":"ana","run":"01a1","suspension":"s-1","message":"go","from_summary":true}`: func(ctx context.Context) (agent.Ack, error) {
			resumed, err := r.Resume(ctx, &ResumeOptions{Suspension: "s-1", Message: "go", FromSummary: true, By: "ana"})
			return resumed.Ack, err
		},
		`{"run":"01a1","reason":"late","deadline":"1m"}`: func(ctx context.Context) (agent.Ack, error) {
			return r.Stop(ctx, "late", &StopOptions{Deadline: time.Minute})
		},
		`{"run":"01a1","reason":"gone"}`: func(ctx context.Context) (agent.Ack, error) { return r.Cancel(ctx, "gone", nil) },
		`{"by":"ana","run":"01a2","request":"q-7","choice":0,"token":"v1.x"}`: func(ctx context.Context) (agent.Ack, error) {
			return c.Answer(ctx, req, "", &AnswerOptions{Choice: &choice, By: "ana", Token: "v1.x"})
		},
		`{"run":"01a2","request":"q-7","digest":"9f2c41aa03b1c2d4"}`: func(ctx context.Context) (agent.Ack, error) { return c.Approve(ctx, req, nil) },
		`{"run":"01a2","request":"q-7","arguments":{"eur":5},"always":true,"digest":"9f2c41aa03b1c2d4","note":"less"}`: func(ctx context.Context) (agent.Ack, error) {
			return c.Approve(ctx, req, &ApproveOptions{Arguments: map[string]int{"eur": 5}, Always: true, Note: "less"})
		},
		`{"run":"01a2","request":"q-7","reason":"too much"}`: func(ctx context.Context) (agent.Ack, error) { return c.Reject(ctx, req, "too much", nil) },
		`{"by":"ana","run":"01a2","answers":[{"request":"q-7","approve":{"request":"q-7"}},{"request":"q-8","answer":{"by":"ana","run":"01a2","request":"q-8","text":"Rome"}}]}`: func(ctx context.Context) (agent.Ack, error) {
			return c.AnswerAll(ctx, req.Session, agent.AnswerTo{Request: "q-7", Approve: &agent.ApproveCommand{}},
				agent.AnswerTo{Request: "q-8", Answer: &agent.AnswerCommand{CommandHeader: orderTo(req, "ana", ""), Text: "Rome"}})
		},
	} {
		ack, err := say(t.Context())
		require.NoError(t, err, want)
		require.Equal(t, agent.EffectAccepted, ack.Effect)
		require.JSONEq(t, want, onWire(t, f.said[len(f.said)-1]))
	}
	require.EqualValues(t, 7, r.seq.Load())
}

// What a run would refuse in any state is not sent.
func TestWhatCantBeMeantIsNotSent(t *testing.T) {
	c := New(&fake{}, nil)
	ctx, req := t.Context(), agent.Request{ID: "q-7", Session: "trip-42"}
	for path, say := range map[string]func() (agent.Ack, error){
		"deadline": func() (agent.Ack, error) {
			return (&Run{client: c, Session: "a"}).Stop(ctx, "", &StopOptions{Deadline: time.Second})
		},
		"session":   func() (agent.Ack, error) { return c.Reject(ctx, agent.Request{ID: "q-7"}, "no", nil) },
		"request":   func() (agent.Ack, error) { return c.Approve(ctx, agent.Request{Session: "a"}, nil) },
		"reason":    func() (agent.Ack, error) { return c.Reject(ctx, req, " ", nil) },
		"text":      func() (agent.Ack, error) { return c.Answer(ctx, req, "", nil) },
		"arguments": func() (agent.Ack, error) { return c.Approve(ctx, req, &ApproveOptions{Arguments: 3}) },
		"answers":   func() (agent.Ack, error) { return c.AnswerAll(ctx, "a") },
	} {
		_, err := say()
		var e *agent.Error
		require.ErrorAs(t, err, &e, path)
		require.Equal(t, agent.CodeInvalidInput, e.Code, path)
		require.Equal(t, path, e.Path)
	}
	_, err := c.Answer(ctx, req, "", &AnswerOptions{Data: json.RawMessage("{")})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	_, err = c.Approve(ctx, req, &ApproveOptions{Arguments: make(chan int)})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}

// A cancel of a run that has ended changes nothing and is no error, whether the
// session is at rest or has another run (HL-51).
func TestCancelOfAnEndedRun(t *testing.T) {
	for _, refusal := range []error{errCompleted, agent.Errorf(agent.CodeStale, "another run is live")} {
		f := &fake{
			update: func(context.Context, string, agent.Command) (agent.Ack, error) { return agent.Ack{}, refusal },
			describe: func(string, string) (*workflowpb.WorkflowExecutionInfo, error) {
				return execution(t, "a", "01a1", completed, agent.Memo{}, nil), nil
			},
			history: closedHistory(),
			result: func(string) (agent.Outcome, error) {
				return agent.Outcome{Type: "outcome", Status: agent.StatusStopped, Seq: 9}, nil
			},
		}
		ack, err := (&Run{client: New(f, nil), Session: "a", ID: "01a1"}).Cancel(t.Context(), "", nil)
		require.NoError(t, err)
		require.Equal(t, agent.Ack{V: 1, Session: "a", Run: "01a1", Status: agent.StatusStopped, Seq: 9, Effect: agent.EffectAlready}, ack)
	}
}

// Whether a resume would be taken, and why not, is read from the status (HX-12).
func TestCanResume(t *testing.T) {
	own, inherited := agent.Hold{From: agent.HoldOwn}, agent.Hold{From: agent.HoldInherited}
	asked := []agent.Request{{ID: "q-1"}}
	rests := func(w agent.Suspension) agent.RunStatus {
		return agent.RunStatus{Status: agent.StatusSuspended, Suspension: &w}
	}
	for name, c := range map[string]struct {
		s   agent.RunStatus
		why agent.Code
	}{
		"running":           {agent.RunStatus{Status: agent.StatusRunning}, agent.CodeNotSuspended},
		"about to ask":      {agent.RunStatus{Status: agent.StatusSuspending, Suspension: &agent.Suspension{Requests: asked}}, agent.CodeNeedsAnswer},
		"about to pause":    {agent.RunStatus{Status: agent.StatusSuspending, Suspension: &agent.Suspension{Holds: []agent.Hold{own}}}, ""},
		"parked":            {rests(agent.Suspension{Kind: agent.SuspensionParked}), ""},
		"parked, too old":   {rests(agent.Suspension{Kind: agent.SuspensionParked, ResumeBy: time.Now().Add(-time.Second)}), agent.CodeExpired},
		"parked, not yet":   {rests(agent.Suspension{Kind: agent.SuspensionParked, ResumeBy: time.Now().Add(time.Hour)}), ""},
		"asks":              {rests(agent.Suspension{Kind: agent.SuspensionInputRequired, Requests: asked}), agent.CodeNeedsAnswer},
		"paused":            {rests(agent.Suspension{Holds: []agent.Hold{own}}), ""},
		"asks and is held":  {rests(agent.Suspension{Holds: []agent.Hold{own}, Requests: asked}), ""},
		"held by an above":  {rests(agent.Suspension{Holds: []agent.Hold{inherited}}), agent.CodeHeldByParent},
		"held by both":      {rests(agent.Suspension{Holds: []agent.Hold{own, inherited}}), ""},
		"waits for below":   {rests(agent.Suspension{Kind: agent.SuspensionAwaitingChildren}), agent.CodeNotSuspended},
		"is being stopped":  {agent.RunStatus{Status: agent.StatusSuspended, Reason: agent.ReasonStopping, Suspension: &agent.Suspension{Holds: []agent.Hold{own}}}, agent.CodeStale},
		"ended":             {agent.RunStatus{Status: agent.StatusCompleted}, agent.CodeClosed},
		"nobody says of it": {agent.RunStatus{}, agent.CodeNotSuspended},
	} {
		f := &fake{
			describe: func(string, string) (*workflowpb.WorkflowExecutionInfo, error) {
				return execution(t, "a", "01a1", running, agent.Memo{}, nil), nil
			},
			status: func(context.Context) (agent.RunStatus, error) { return c.s, nil },
		}
		r := &Run{client: New(f, nil), Session: "a", ID: "01a1"}
		if err := r.CanResume(t.Context()); c.why == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, c.why, name)
		}
		s, err := r.Suspension(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.s.Suspension, s)
	}
}

// A server bears ten updates of a session at once; more and all of them time out.
func TestAtMostEightUpdatesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := &fake{update: func(ctx context.Context, session string, command agent.Command) (agent.Ack, error) {
			<-release
			return accepted(ctx, session, command)
		}}
		r := &Run{client: New(f, nil), Session: "a", ID: "01a1"}
		done := make(chan error, 50)
		for range 50 {
			go func() { _, err := r.Resume(t.Context(), nil); done <- err }()
		}
		synctest.Wait()
		require.Len(t, f.said, atOnce)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := r.Pause(ctx, "", nil)
		require.ErrorIs(t, err, agent.CodeTimeout, "who waits for the others can give up")
		close(release)
		for range 50 {
			require.NoError(t, <-done)
		}
		require.Len(t, f.said, 50)
	})
}

// Where no worker answers, the same verb with the same id is left for later
// (HX-21).
func TestSayOrLeave(t *testing.T) {
	for name, update := range map[string]func(context.Context, string, agent.Command) (agent.Ack, error){
		"nobody polls": func(context.Context, string, agent.Command) (agent.Ack, error) {
			return agent.Ack{}, serviceerror.NewFailedPrecondition("no poller")
		},
		"nobody answers": func(ctx context.Context, _ string, _ agent.Command) (agent.Ack, error) {
			<-ctx.Done()
			return agent.Ack{}, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var left []agent.Command
				f := &fake{update: update, signal: func(_ string, command agent.Command) error { left = append(left, command); return nil }}
				c := New(f, nil)
				for _, command := range []agent.Command{
					agent.PauseCommand{}, agent.InterruptCommand{Reason: "x"}, agent.StopCommand{}, agent.CancelCommand{}, agent.SendCommand{Text: "x", CommandHeader: agent.CommandHeader{ID: "m-1"}},
				} {
					began := time.Now()
					ack, later, err := c.UpdateOrSignal(t.Context(), "a", command)
					require.NoError(t, err)
					require.True(t, later)
					require.Nil(t, ack)
					require.LessOrEqual(t, time.Since(began), patience)
				}
				require.Equal(t, f.said, left)
				for i, command := range left {
					require.Equal(t, f.ids[i], command.Header().ID+"-"+remembered.CommandDigest(command))
				}
				require.Equal(t, "m-1", left[4].Header().ID)
			})
		})
	}
}

func TestSayOrLeaveSaysItNow(t *testing.T) {
	c := New(&fake{update: accepted}, nil)
	ack, later, err := c.UpdateOrSignal(t.Context(), "a", agent.PauseCommand{})
	require.NoError(t, err)
	require.False(t, later)
	require.EqualValues(t, 7, ack.Seq)
	for _, command := range []agent.Command{agent.ApproveCommand{Request: "q-1"}, agent.ResumeCommand{}, agent.EmitCommand{Topic: "x"}, &agent.PauseCommand{}} {
		_, _, err := c.UpdateOrSignal(t.Context(), "a", command)
		require.ErrorIs(t, err, agent.CodeInvalidInput)
	}
	_, _, err = c.UpdateOrSignal(t.Context(), "a", agent.StopCommand{Deadline: 1})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	// A refusal, and a caller who has no more time, leave nothing.
	for _, refusal := range []error{errCompleted, errors.New("boom")} {
		c = New(&fake{update: func(context.Context, string, agent.Command) (agent.Ack, error) { return agent.Ack{}, refusal }}, nil)
		_, later, err = c.UpdateOrSignal(t.Context(), "a", agent.PauseCommand{})
		require.Error(t, err)
		require.False(t, later)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c = New(&fake{update: func(context.Context, string, agent.Command) (agent.Ack, error) {
		cancel()
		return agent.Ack{}, context.DeadlineExceeded
	}}, nil)
	_, later, err = c.UpdateOrSignal(ctx, "a", agent.PauseCommand{})
	require.ErrorIs(t, err, agent.CodeTimeout)
	require.False(t, later)
}
