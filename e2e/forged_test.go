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

// forgedStage is a lead that waits for a scout in the background, which asks somebody.
func forgedStage(t *testing.T) (s *stage, lead *client.Run, scout agent.Node) {
	t.Helper()
	s = setup(t, agent.Definition{Agents: []agent.SubAgent{{Agent: "tester"}}, Lifecycle: true, Tools: []string{agent.AskUserTool}}, testsuite.NewScript(
		testsuite.Reply{Match: "^look around", Calls: call(agent.AskUserTool, map[string]any{"question": "Where?"})},
		testsuite.Reply{Match: "^Rome", Text: "seen"},
		testsuite.Reply{Match: "^go", Calls: call("subagent__tester", map[string]any{"task": "look around", "background": true})},
		testsuite.Reply{Match: `"status":"running"`, Calls: call("subagent_wait", nil)},
		testsuite.Reply{Match: `"status":"suspended"`, Calls: call(agent.AskUserTool, map[string]any{"question": "Go on?"})},
		testsuite.Reply{Match: "^on", Calls: call("subagent_wait", nil)},
		testsuite.Reply{Match: `"status":"completed"`, Text: "done"},
	))
	lead = s.begin(t, "go", nil)
	s.suspended(t, lead)
	require.Eventually(t, func() bool {
		tree, err := lead.Tree(t.Context())
		if err != nil || len(tree) < 2 || tree[1].Status != agent.StatusSuspended {
			return false
		}
		scout = tree[1]
		return true
	}, patience, 50*time.Millisecond)
	return s, lead, scout
}

// Whoever may signal a run can say that a child of it has ended. The run asks Temporal, and the
// child goes on.
func TestAForgedReportIsNoResult(t *testing.T) {
	t.Parallel()
	s, lead, scout := forgedStage(t)
	for _, from := range []string{scout.Run, "another-run"} {
		forged := map[string]any{"run": lead.ID, "session": scout.Session, "from": from, "seq": 1 << 20, "status": "completed"}
		require.NoError(t, s.temporal.SignalWorkflow(t.Context(), lead.Session, "", signals.ChildReport, forged))
	}
	require.NoError(t, s.temporal.SignalWorkflow(t.Context(), scout.Session, "", signals.ParentOrder, map[string]any{"run": scout.Run, "from": scout.Run, "verb": "cancel"}))
	require.NoError(t, s.temporal.SignalWorkflow(t.Context(), scout.Session, "", signals.ParentOrder, map[string]any{"run": scout.Run, "verb": "cancel"}))
	below, err := s.Get(t.Context(), scout.Session)
	require.NoError(t, err)
	status, err := below.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusSuspended, status.Status, "no order but its parent's")
	_, err = s.Answer(t.Context(), status.Suspension.Requests[0], "Rome", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, s.result(t, below).Status)
	_, err = s.Answer(t.Context(), s.suspended(t, lead).Requests[0], "on", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, s.result(t, lead).Status)
	require.Equal(t, 1, s.events(t, lead, agent.EventChildEnded))
}
