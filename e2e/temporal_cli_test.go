package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/testsuite"
)

// temporalCommand returns the path of the plain temporal command.
func temporalCommand(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("temporal")
	if err != nil {
		err = fmt.Errorf("the temporal command is missing: go install github.com/temporalio/cli/cmd/temporal@latest (%w)", err)
	}
	testenv.Need(t, err)
	return path
}

// cli runs the plain temporal command against the stage's server.
func (s *stage) cli(t *testing.T, args ...string) (out []byte, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), temporalCommand(t), slices.Concat(args, []string{"--address", s.addr}, codecFlags(t))...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	return cmd.Output()
}

// Whoever has no program of ours starts, asks and reads with the plain temporal
// command, and what it prints is what docs/wire.md says (HX-10). A start that is wrong fails before
// there is a run: no log has it, the store has no head of it, and no model is asked (HA-150).
func TestPlainTemporalCommand(t *testing.T) {
	t.Parallel()
	script := testsuite.NewScript(
		testsuite.Reply{Calls: call("echo", map[string]any{"text": "hi"})}, testsuite.Reply{Text: "done"})
	s := setup(t, agent.Definition{}, script, echo(nil))
	session := "cli-" + s.queue
	_, err := s.cli(t, "workflow", "start", "-w", session, "--type", "fermata.run", "--task-queue", s.queue,
		"--input", `{"agent":"tester","input":{"text":"Pay invoice 118"},"by":"ana@acme.com"}`)
	require.NoError(t, err)

	raw, err := s.cli(t, "workflow", "result", "-w", session, "-o", "json")
	require.NoError(t, err)
	var result struct{ Result agent.Outcome }
	require.NoError(t, json.Unmarshal(raw, &result), "%s", raw)
	require.Equal(t, agent.StatusCompleted, result.Result.Status)
	require.Equal(t, "done", result.Result.Text)

	for name, into := range map[string]any{"status": &agent.RunStatus{}, "transcript": &struct{ Messages []agent.Message }{}, "state": &struct{ V int }{}} {
		raw, err = s.cli(t, "workflow", "query", "-w", session, "--type", name, "-o", "json")
		require.NoError(t, err)
		var answer struct{ QueryResult []json.RawMessage }
		require.NoError(t, json.Unmarshal(raw, &answer), "%s", raw)
		require.NoError(t, json.Unmarshal(answer.QueryResult[0], into), "%s", raw)
		if status, ok := into.(*agent.RunStatus); ok {
			require.Equal(t, agent.StatusCompleted, status.Status)
			require.Equal(t, session, status.Session)
			require.Equal(t, 2, status.Turn)
		}
	}

	// What is wrong is refused with a code, and the message alone says what and where.
	_, err = s.cli(t, "workflow", "start", "-w", session+"-bad", "--type", "fermata.run", "--task-queue", s.queue,
		"--input", `{"agent":"tester","input":{"txt":"Pay"}}`)
	require.NoError(t, err)
	run, err := s.Get(t.Context(), session+"-bad")
	require.NoError(t, err)
	out, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.CodeInvalidInput, out.Error.Code)
	require.Equal(t, "input.txt", out.Error.Path)
	require.Equal(t, "start refused: input.txt is not known here", out.Error.Message)
	raw, err = s.cli(t, "workflow", "result", "-w", session+"-bad")
	require.Error(t, err)
	if ring() == nil { // the command decrypts payloads, and not the messages of failures
		require.Contains(t, string(raw), "input.txt is not known here")
	}
	for of, n := range map[string]int{session: 1, session + "-bad": 0} {
		runs, err := s.Runs(t.Context(), of)
		require.NoError(t, err)
		require.Len(t, runs, n, of)
	}
	_, err = s.dir.Head(t.Context(), session)
	require.NoError(t, err)
	_, err = s.dir.Head(t.Context(), session+"-bad")
	require.ErrorIs(t, err, agent.CodeNotFound)
	require.Len(t, script.Requests(), 2, "both are of the run that was right")
}

// temporal workflow cancel is the verb cancel; a terminated run is told as what it
// is (PA-34).
func TestCancelAndTerminateFromOutside(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string]string{"cancel": agent.ReasonRequested, "terminate": agent.ReasonTerminated} {
		t.Run(verb, func(t *testing.T) {
			s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "slow", Delay: patience}))
			run, err := s.Start(t.Context(), "tester", "go", &client.StartOptions{Labels: map[string]string{"team": "a"}})
			require.NoError(t, err)
			s.until(t, run, agent.EventTurnStarted)
			_, err = s.cli(t, "workflow", verb, "-w", run.Session)
			require.NoError(t, err)
			out, err := run.Result(t.Context())
			require.NoError(t, err)
			require.Equal(t, agent.StatusCancelled, out.Status)
			require.Equal(t, want, out.Reason)
			var listed []client.RunInfo
			require.Eventually(t, func() bool { // visibility follows a little later
				for l, err := range s.List(t.Context(), &client.ListOptions{Status: agent.StatusCancelled, Query: "WorkflowId = '" + run.Session + "'"}) {
					require.NoError(t, err)
					listed = append(listed, l)
				}
				return len(listed) > 0
			}, patience, 50*time.Millisecond)
			require.Equal(t, agent.StatusCancelled, listed[0].Status)
			require.Equal(t, "go", listed[0].Task)
		})
	}
}
