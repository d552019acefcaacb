package e2e

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// Design fact 1: messages enter the history once. A model activity is told where
// to look and not what was said.
func TestNoTranscriptInAnyInput(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{Instructions: "SECRET-INSTRUCTIONS"}, testsuite.NewScript(
		testsuite.Reply{Text: "FIRST-WORDS", Calls: call("echo", map[string]any{"text": "ARGUMENT"})},
		testsuite.Reply{Text: "LAST-WORDS"},
	), echo(nil))
	run, out := s.run(t, "THE-TASK", nil)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, "LAST-WORDS", out.Text)
	models := 0
	for _, e := range s.history(t, run.Session, run.ID) {
		a := e.GetActivityTaskScheduledEventAttributes()
		if a.GetActivityType().GetName() != "fermata.model" {
			continue
		}
		models++
		input := string(a.GetInput().GetPayloads()[0].GetData())
		require.Less(t, len(input), 300)
		for _, said := range []string{"SECRET-INSTRUCTIONS", "FIRST-WORDS", "ARGUMENT", "THE-TASK"} {
			require.NotContains(t, input, said)
		}
	}
	require.Equal(t, 2, models)
}

// Design fact 2: what a turn of a model call and a tool costs in history events.
// Two activities are six; a workflow task after each is three more, less where
// the server hands the next one on.
func TestWhatATurnCosts(t *testing.T) {
	t.Parallel()
	for kind, c := range map[string]struct {
		tool tool.Tool
		most int
	}{"regular": {echo(nil), 13}, "local": {echo(&tool.Options{Local: true}), 8}} {
		t.Run(kind, func(t *testing.T) {
			events := func(turns int) int {
				var replies []testsuite.Reply
				for i := range turns {
					replies = append(replies, testsuite.Reply{Calls: call("echo", map[string]any{"text": strconv.Itoa(i)})})
				}
				s := setup(t, agent.Definition{}, testsuite.NewScript(append(replies, testsuite.Reply{Text: "done"})...), c.tool)
				run, out := s.run(t, "go", nil)
				require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
				return len(s.history(t, run.Session, run.ID))
			}
			perTurn := (events(22) - events(2)) / 20
			require.LessOrEqual(t, perTurn, c.most)
			t.Logf("%d events a turn", perTurn)
		})
	}
}

// The next run of a session knows what was said in those before, and each is recorded
// with its status and times (HX-02, HX-03, OA-84, OA-86, HA-25, HA-99, HA-101).
func TestASessionGoesOn(t *testing.T) {
	t.Parallel()
	script := testsuite.NewScript(testsuite.Reply{Text: "one"}, testsuite.Reply{Text: "two"})
	s := setup(t, agent.Definition{}, script)
	begun := time.Now().Add(-time.Minute)
	first, out := s.run(t, "first", &client.StartOptions{Session: "goes-on"})
	require.Equal(t, "one", out.Text)
	second, out := s.run(t, "second", &client.StartOptions{Session: "goes-on"})
	require.Equal(t, "two", out.Text, "the second run knows the first")
	require.NotEqual(t, first.ID, second.ID)
	messages, err := s.Transcript(t.Context(), "goes-on")
	require.NoError(t, err)
	var texts []string
	for _, m := range messages {
		texts = append(texts, m.Text())
	}
	require.Equal(t, "first one second two", strings.Join(texts, " "))

	_, out = s.run(t, "third", &client.StartOptions{Session: "goes-on", Carry: agent.CarryReset})
	require.Equal(t, "one", out.Text, "a run that begins anew knows nothing of before")

	runs, err := s.Runs(t.Context(), "goes-on")
	require.NoError(t, err)
	require.Equal(t, []string{first.ID, second.ID, out.Run}, []string{runs[0].Run, runs[1].Run, runs[2].Run})
	for i, r := range runs {
		require.Equal(t, []any{agent.StatusCompleted, 1}, []any{r.Status, r.Turns})
		require.WithinRange(t, r.Started, begun, r.Ended)
		require.False(t, i > 0 && r.Started.Before(runs[i-1].Ended), "one after the other")
	}
}

// An outcome that is fed into another run goes on with exactly its conversation. Its own session has
// gone on meanwhile. The second outcome is that of a run that was cancelled within a turn, with a
// message that came too late (HA-32).
func TestAnOutcomeIsFedIntoAnotherRun(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	look := tool.New("look", "looks", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
		close(began)
		<-ctx.Done()
		return "half of it", nil
	}, nil)
	s := setup(t, agent.Definition{}, testsuite.NewScript(
		testsuite.Reply{Text: "one"}, testsuite.Reply{Text: "two"}, testsuite.Reply{Calls: call("look", nil)}, testsuite.Reply{Text: "four"}), look)
	session := "fed-" + s.queue
	said := map[string][]agent.Message{} // by checkpoint
	var outcomes []*agent.Outcome
	for i, text := range []string{"first", "second", "third", "fourth"} {
		run, err := s.Start(t.Context(), "tester", text, &client.StartOptions{Session: session})
		require.NoError(t, err)
		if i == 2 {
			<-began
			_, err = s.Send(t.Context(), session, "hurry", nil) // it is in the log alone, behind the last turn
			require.NoError(t, err)
			_, err = run.Cancel(t.Context(), "", nil)
			require.NoError(t, err)
		}
		out, err := run.Result(t.Context())
		require.NoError(t, err)
		said[out.Checkpoint], err = s.Transcript(t.Context(), session)
		require.NoError(t, err)
		outcomes = append(outcomes, out)
	}
	for i, want := range map[int]string{0: "two", 2: "four"} {
		out := outcomes[i]
		fork, err := s.Fork(t.Context(), out.Session, &client.ForkOptions{Checkpoint: out.Checkpoint, NewSession: true, Text: "go on"})
		require.NoError(t, err)
		run, err := fork.Start(t.Context())
		require.NoError(t, err)
		next, err := run.Result(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, next.Text, "%+v", next.Error)
		messages, err := s.Transcript(t.Context(), run.Session)
		require.NoError(t, err)
		known := said[out.Checkpoint]
		require.Len(t, messages, len(known)+2)
		require.Equal(t, known, messages[:len(known)], "all that was said, and nothing of later runs")
	}
}

// A result has the whole text of its run, and the part meant for people without the text that ends the
// run (HA-25). Earlier and later runs of the session are not in it.
func TestTheWholeTextOfARun(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{DoneSentinel: "##DONE##"}, testsuite.NewScript(
		testsuite.Reply{Text: "Hello.\n##DONE##"},
		testsuite.Reply{Text: "Let me look.", Calls: call("echo", map[string]any{"text": "rain"})},
		testsuite.Reply{Text: "It rains.\n##DONE##"}, testsuite.Reply{Text: "Bye.\n##DONE##"}), echo(nil))
	var run *client.Run
	for i, text := range []string{"hi", "how is the weather?", "thanks"} {
		one, out := s.run(t, text, &client.StartOptions{Session: "whole-" + s.queue})
		require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
		if i == 1 {
			run = one
		}
	}
	w, err := run.Whole(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Let me look.\n\nIt rains.\n##DONE##", w.Text)
	require.Equal(t, "It rains.", w.Outcome.Text)
	var roles []agent.Role
	for _, m := range w.Messages {
		roles = append(roles, m.Role)
	}
	require.Equal(t, []agent.Role{agent.RoleUser, agent.RoleAssistant, agent.RoleTool, agent.RoleAssistant}, roles)
	require.Equal(t, "how is the weather?", w.Messages[0].Text())
}

func TestUnknownAgentAndWrongInput(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript())
	run, err := s.Start(t.Context(), "nobody", "hi", nil)
	require.NoError(t, err)
	out, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.CodeUnknownAgent, out.Error.Code)
	require.Contains(t, out.Error.Message, "it has tester")
	d, err := s.temporal.DescribeWorkflowExecution(t.Context(), run.Session, "")
	require.NoError(t, err)
	require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_FAILED, d.GetWorkflowExecutionInfo().GetStatus())

	_, err = s.Start(t.Context(), "Not A Name", "hi", nil)
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	_, err = s.Start(t.Context(), "tester", " ", nil)
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}
