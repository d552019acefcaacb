package e2e

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/testsuite"
)

// A thousand turns of ten kilobytes: the run goes on over several executions, none
// of which grows beyond what Temporal likes, and the whole is still there (OA-63).
func TestAThousandTurns(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	const turns = 1000
	var replies []testsuite.Reply
	for i := range turns - 1 {
		replies = append(replies, testsuite.Reply{TextBytes: 10_000, Calls: call("echo", map[string]any{"text": strconv.Itoa(i)})})
	}
	s := setup(t, agent.Definition{Limits: agent.Limits{Turns: turns}}, testsuite.NewScript(append(replies, testsuite.Reply{Text: "done"})...), echo(nil))
	run, out := s.runFor(t, 5*time.Minute, "go", nil)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, turns, out.Turns)

	executions := 0
	for execution := run.ID; execution != ""; executions++ {
		d, err := s.temporal.DescribeWorkflowExecution(t.Context(), run.Session, execution)
		require.NoError(t, err)
		require.Less(t, d.GetWorkflowExecutionInfo().GetHistorySizeBytes(), int64(5<<20))
		events := s.history(t, run.Session, execution)
		if executions == 0 {
			s.keep(t, "carried-over", run.Session, execution)
		}
		last := events[len(events)-1]
		require.NotEqual(t, enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED, last.GetEventType())
		execution = last.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	require.Greater(t, executions, 1, "it was carried over")

	messages, err := s.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	require.Len(t, messages, 1+2*(turns-1)+1)
	next := 0
	for _, m := range messages {
		if m.Role == agent.RoleTool {
			require.Equal(t, strconv.Itoa(next), m.Parts[0].Result.Text)
			next++
		}
	}
	s.logPace(t, run.Session)
}

// logPace says how long the first and the last hundred turns took. It is only
// told: timings are judged in bench/.
func (s *stage) logPace(t *testing.T, session string) {
	head, err := s.dir.Head(t.Context(), session)
	require.NoError(t, err)
	view, err := s.log().View(t.Context(), head.Digest)
	require.NoError(t, err)
	var ends []time.Time
	for _, e := range view.Events() {
		if e.Type == agent.EventTurnEnded {
			ends = append(ends, e.Time)
		}
	}
	n := len(ends)
	t.Logf("first hundred turns %v, last hundred %v", ends[100].Sub(ends[0]), ends[n-1].Sub(ends[n-101]))
}
