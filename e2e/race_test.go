package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
)

// saying says something by update, later, and returns only what became of it.
func (s *stage) saying(run *client.Run, c agent.Command) func(context.Context) (agent.Ack, error) {
	return func(ctx context.Context) (agent.Ack, error) { return signals.Update(ctx, s.temporal, run.Session, c) }
}

// against lets two things be said at once, and returns what became of them.
func (s *stage) against(t *testing.T, run *client.Run, first, second agent.Command) (acks [2]agent.Ack, errs [2]error) {
	t.Helper()
	says := []func(context.Context) (agent.Ack, error){s.saying(run, first), s.saying(run, second)}
	s.race(t, 2, func(ctx context.Context, i int) error {
		acks[i], errs[i] = says[i](ctx)
		return errs[i]
	})
	return acks, errs
}

// Stop against resume: whichever is first, the run ends stopped, or was never
// resumed; a loser learns how the run stands.
func TestStopAgainstResume(t *testing.T) {
	t.Parallel()
	for range 5 {
		s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Match: "You are being stopped", Text: `{"summary":"x"}`}, testsuite.Reply{Text: "slow", Delay: time.Minute}))
		run := s.begin(t, "go", nil)
		s.until(t, run, agent.EventTurnStarted)
		_, err := run.Interrupt(t.Context(), "", nil)
		require.NoError(t, err)
		s.suspended(t, run)
		_, errs := s.against(t, run, agent.StopCommand{Deadline: agent.Duration(4 * time.Second)}, agent.ResumeCommand{})
		require.NoError(t, errs[0], "a stop overtakes a resume")
		if errs[1] != nil {
			require.Contains(t, []agent.Code{agent.CodeStale, agent.CodeClosed}, agent.CodeOf(errs[1]), "%v", errs[1])
		}
		require.Equal(t, agent.StatusStopped, s.rest(t, run).Status)
	}
}

// Interrupt against completion: the run is held, or was done and the interrupt is
// told so; never both (HX-19).
func TestInterruptAgainstCompletion(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	moot, held, closed := 0, 0, 0
	for i := range 20 {
		s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done", Delay: time.Duration(i) * 2 * time.Millisecond}))
		run := s.begin(t, "go", nil)
		s.until(t, run, agent.EventTurnStarted)
		ack, err := signals.Update(t.Context(), s.temporal, run.Session, agent.InterruptCommand{})
		switch {
		case err != nil:
			require.ErrorIs(t, err, agent.CodeClosed)
			closed++
		case ack.Effect == agent.EffectRunEnded:
			moot++
		default:
			held++
		}
		o := s.rest(t, run)
		if o.Status == agent.StatusSuspended {
			_, err := run.Resume(t.Context(), nil)
			require.NoError(t, err)
			o = s.rest(t, run)
		}
		require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	}
	t.Logf("held %d, moot %d, closed %d", held, moot, closed)
}

// Answer against its deadline: one of them decides, and one alone. If the deadline does, the log has the
// answer, too, unless the run has ended (HX-59).
func TestAnswerAgainstTimeout(t *testing.T) {
	t.Parallel()
	for i := range 5 {
		s := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(time.Second), Default: "nobody"}}, testsuite.NewScript(
			testsuite.Reply{Calls: call(agent.AskUserTool, map[string]any{"question": "Where to?"})}, testsuite.Reply{Text: "done"}))
		run := s.begin(t, "go", nil)
		q := s.suspended(t, run).Requests[0]
		timer := time.NewTimer(time.Until(q.Deadline) + time.Duration(i-2)*2*time.Millisecond)
		<-timer.C
		_, err := s.Answer(t.Context(), q, "Rome", nil)
		o := s.rest(t, run)
		require.Equal(t, agent.StatusCompleted, o.Status)
		messages, bad := s.Transcript(t.Context(), run.Session)
		require.NoError(t, bad)
		want := "Rome"
		if err != nil {
			require.Contains(t, []agent.Code{agent.CodeStale, agent.CodeClosed}, agent.CodeOf(err))
			want = "nobody"
			if errors.Is(err, agent.CodeStale) {
				require.Equal(t, 1, s.events(t, run, agent.EventRequestAnsweredLate))
			}
		}
		require.Equal(t, want, messages[2].Parts[0].Result.Text)
		require.Equal(t, 1, s.events(t, run, agent.EventRequestAnswered)+s.events(t, run, agent.EventRequestExpired))
	}
}

// A verb against the start of a child: the child is held before its first call, or
// is stopped in it; it does not work on under a held parent (HX-78).
func TestInterruptAgainstTheStartOfChildren(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	f := plant(t, 3)
	for i := range 8 {
		run, err := f.Start(t.Context(), "n0", "level 0", nil)
		require.NoError(t, err)
		f.until(t, run, agent.EventTurnEnded, agent.EventCallStarted)
		pause := time.NewTimer(time.Duration(i) * 4 * time.Millisecond)
		<-pause.C
		_, err = run.Interrupt(t.Context(), "", nil)
		require.NoError(t, err)
		f.suspended(t, run)
		f.rests(t, run)
		require.Zero(t, f.busy.Load())
		_, err = run.Cancel(t.Context(), "", nil)
		require.NoError(t, err)
		require.Equal(t, agent.StatusCancelled, f.rest(t, run).Status)
	}
}

// rests waits until no run of a tree works.
func (f *forest) rests(t *testing.T, run *client.Run) {
	t.Helper()
	require.Eventually(t, func() bool {
		tree, err := run.Tree(t.Context())
		for _, n := range tree {
			if n.Status != agent.StatusSuspended && !n.Status.Ended() {
				return false
			}
		}
		return err == nil
	}, patience, 20*time.Millisecond)
}

// What is refused by a validator is not in the history at all (HL-39, HX-57,
// HX-87, OA-19, OA-43, OA-44, OA-57, PA-14, PA-18, PA-95).
func TestRefusedUpdatesLeaveNoTrace(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(
		testsuite.Reply{Calls: call(agent.AskUserTool, map[string]any{"question": "Where to?"})}, testsuite.Reply{Text: "done"}))
	run := s.begin(t, "go", nil)
	q := s.suspended(t, run).Requests[0]
	before, err := run.Status(t.Context())
	require.NoError(t, err)
	for _, c := range []struct {
		command agent.Command
		code    agent.Code
	}{
		{agent.ResumeCommand{}, agent.CodeNeedsAnswer},
		{agent.ResumeCommand{Suspension: "s-9"}, agent.CodeStale},
		{agent.ApproveCommand{Request: q.ID}, agent.CodeInvalidInput},
		{agent.AnswerCommand{Request: "q-9", Text: "x"}, agent.CodeNotFound},
		{agent.AnswerCommand{Request: q.ID}, agent.CodeInvalidInput},
		{agent.PauseCommand{CommandHeader: agent.CommandHeader{Run: "another-run"}}, agent.CodeStale},
		{agent.EmitCommand{Topic: "x"}, agent.CodeStale},
	} {
		_, err := signals.Update(t.Context(), s.temporal, run.Session, c.command)
		require.ErrorIs(t, err, c.code, "%+v", c.command)
	}
	require.Zero(t, s.count(t, run, enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED))
	after, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, after)
	_, err = s.Answer(t.Context(), q, "Rome", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, s.rest(t, run).Status)
	_, err = s.Answer(t.Context(), q, "Oslo", nil)
	require.ErrorIs(t, err, agent.CodeClosed)
}
