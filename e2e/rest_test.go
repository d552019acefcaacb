package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
)

// A resume returns a new handle, which waits for what the resumed run comes to. The old handle still
// reads the run (HX-34).
func TestAResumeReturnsAHandle(t *testing.T) {
	t.Parallel()
	def := agent.Definition{Tools: []string{agent.AskUserTool}}
	s := setup(t, def, testsuite.NewScript(
		testsuite.Reply{Calls: call(agent.AskUserTool, map[string]any{"question": "Where to?"})},
		testsuite.Reply{Calls: call(agent.AskUserTool, map[string]any{"question": "And when?"})}, testsuite.Reply{Text: "done"}))
	old := s.begin(t, "go", nil)
	asked := s.suspended(t, old).Requests[0]
	s.say(t, old, agent.PauseCommand{Reason: "lunch"})
	s.say(t, old, agent.AnswerCommand{Request: asked.ID, Text: "Rome"})
	require.Equal(t, agent.SuspensionHeld, s.rest(t, old).Suspension.Kind)

	resumed, err := old.Resume(t.Context(), nil)
	require.NoError(t, err)
	require.NotSame(t, old, resumed.Run)
	require.Equal(t, []any{old.Session, old.ID, agent.EffectAccepted}, []any{resumed.Session, resumed.ID, resumed.Ack.Effect})
	rest, err := resumed.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.SuspensionInputRequired, rest.Suspension.Kind, "not the suspension that the resume ended")
	st, err := old.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, rest.Suspension, st.Suspension)
	ack, err := s.Answer(t.Context(), rest.Suspension.Requests[0], "in May", nil)
	require.NoError(t, err)
	out, err := s.RunOf(ack).Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	for _, r := range []*client.Run{old, resumed.Run} {
		again, err := r.Result(t.Context())
		require.NoError(t, err)
		require.Equal(t, out, again)
		st, err := r.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, agent.StatusCompleted, st.Status)
	}

	refused, err := old.Resume(t.Context(), nil)
	require.ErrorIs(t, err, agent.CodeClosed)
	require.Nil(t, refused, "what was not resumed has no handle")
}

// A rest is an outcome of its own, which has what is needed to go on (OA-20,
// OA-21, HA-14, HA-33, HA-137); who never saw the run goes on with it by its
// session's name alone (OA-29, PA-78). Session and run are the same before and
// after (OA-37, OA-38), turns go on to have checkpoints (OA-40), of which no
// listing of suspensions has any and the other way round (OA-56), and what has
// ended, as the refusal tells, or never was can't be resumed (HX-86, OA-75). A
// question that the model asks names no failure (PA-02).
func TestARestKeepsItsNames(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(
		testsuite.Reply{Calls: call("echo", map[string]any{"text": "hi"})}, asks("Where to?"),
		testsuite.Reply{Calls: call("echo", map[string]any{"text": "bye"})}, testsuite.Reply{Text: "done"}), echo(nil))
	run := s.begin(t, "go", nil)
	rest := s.rest(t, run)
	require.Equal(t, agent.StatusSuspended, rest.Status)
	require.False(t, rest.OK())
	require.Equal(t, []string{run.Session, run.ID, "s-1"}, []string{rest.Session, rest.Run, rest.Suspension.ID})
	require.Equal(t, 2, rest.Turns)
	require.Positive(t, rest.Usage.Input)
	q := rest.Suspension.Requests[0]
	require.Equal(t, []string{run.Session, run.ID, "q-1", "Where to?"}, []string{q.Session, q.Run, q.ID, q.Text})
	require.Equal(t, []any{agent.InitiatorSelf, "question", agent.Code("")}, []any{rest.Suspension.Initiator, rest.Suspension.Cause, q.Cause}, "no failure is behind it")
	turns := s.turns(t, run.Session)
	require.Equal(t, []int{1, 0}, turns, "the second turn waits")
	require.Equal(t, []string{"q-1"}, s.asked(t, run.Session))

	other := client.New(s.temporal, &client.Options{TaskQueue: s.queue, Store: s.dir})
	found, err := other.Get(t.Context(), run.Session)
	require.NoError(t, err)
	require.Equal(t, run.ID, found.ID)
	_, err = other.Answer(t.Context(), q, "Rome", nil)
	require.NoError(t, err)
	o := s.rest(t, found)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, []string{run.Session, run.ID}, []string{o.Session, o.Run})
	require.Nil(t, o.Suspension)
	require.Equal(t, 4, o.Turns)
	require.Equal(t, []int{4, 3, 2, 1, 0}, s.turns(t, run.Session))
	require.Empty(t, s.asked(t, run.Session))

	_, err = found.Resume(t.Context(), nil)
	var refused *agent.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, []any{agent.CodeClosed, agent.StatusCompleted}, []any{refused.Code, refused.Status})
	_, err = signals.Update(t.Context(), s.temporal, "nobody-"+s.queue, agent.ResumeCommand{})
	require.ErrorIs(t, err, agent.CodeNotFound)
	_, err = other.Get(t.Context(), "nobody-"+s.queue)
	require.ErrorIs(t, err, agent.CodeNotFound)
}

// Only a run that rests is resumed. One that works, also since it was resumed already, one
// that ended in whatever way, and one that never was are refused, each with its code (OA-31).
func TestOnlyWhatRestsIsResumed(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript(
		testsuite.Reply{Match: "^work$", Text: "late", Delay: time.Hour},
		testsuite.Reply{Match: "^fail$", Calls: call("echo", map[string]any{"text": "hi"})},
		testsuite.Reply{Match: "being stopped", Text: `{"summary":"half"}`},
		testsuite.Reply{Text: "done"}), echo(nil))
	refused := func(run *client.Run, code agent.Code, what string) {
		_, err := run.Resume(t.Context(), nil)
		require.ErrorIs(t, err, code, what)
	}
	for want, run := range map[agent.Status]*client.Run{
		agent.StatusCompleted: s.begin(t, "go", nil),
		agent.StatusFailed:    s.begin(t, "fail", &client.StartOptions{Limits: agent.Limits{Turns: 1}}),
		agent.StatusCancelled: s.begin(t, "work", nil),
		agent.StatusStopped:   s.begin(t, "work", nil),
	} {
		if want == agent.StatusCancelled || want == agent.StatusStopped {
			s.until(t, run, agent.EventTurnStarted)
			refused(run, agent.CodeNotSuspended, "it works")
		}
		var err error
		switch want {
		case agent.StatusCancelled:
			_, err = run.Interrupt(t.Context(), "", nil)
			require.NoError(t, err)
			s.suspended(t, run)
			_, err = run.Resume(t.Context(), nil)
			require.NoError(t, err)
			refused(run, agent.CodeNotSuspended, "it was resumed already")
			_, err = run.Cancel(t.Context(), "", nil)
		case agent.StatusStopped:
			_, err = run.Stop(t.Context(), "", nil)
		}
		require.NoError(t, err)
		require.Equal(t, want, s.rest(t, run).Status)
		refused(run, agent.CodeClosed, string(want))
	}
	_, err := signals.Update(t.Context(), s.temporal, "nobody-"+s.queue, agent.ResumeCommand{})
	require.ErrorIs(t, err, agent.CodeNotFound, "it never was")
}

// turns lists the turns of a session's checkpoints.
func (s *stage) turns(t *testing.T, session string) (turns []int) {
	t.Helper()
	page, err := s.Checkpoints(t.Context(), session, nil)
	require.NoError(t, err)
	for _, p := range page.Items {
		turns = append(turns, p.Turn)
	}
	return turns
}

// asked lists what a session's suspension asks.
func (s *stage) asked(t *testing.T, session string) (ids []string) {
	t.Helper()
	run, err := s.Get(t.Context(), session)
	require.NoError(t, err)
	w, err := run.Suspension(t.Context())
	require.NoError(t, err)
	if w != nil {
		for _, q := range w.Requests {
			ids = append(ids, q.ID)
		}
	}
	return ids
}
